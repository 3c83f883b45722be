// An allocator in which some allocations fail, for LD_PRELOAD: one in GPULOWER_FAIL_RATE, by the seed GPULOWER_FAIL_SEED; or
// GPULOWER_FAIL_RUN in a row, from number GPULOWER_FAIL_AT on. The first that fails makes the file GPULOWER_FAIL_TOLD.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static atomic_ulong count;
static unsigned long seed, rate, at, run;

static void tell(void) {
  static atomic_flag told = ATOMIC_FLAG_INIT;
  const char *path = getenv("GPULOWER_FAIL_TOLD");
  if (path && !atomic_flag_test_and_set(&told))
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  errno = ENOMEM;
}

static int fails(void) {
  if (rate == 0 && run == 0)
    return 0;
  uint64_t number = atomic_fetch_add(&count, 1);
  if (run != 0) {
    if (number < at || number - at >= run)
      return 0;
    tell();
    return 1;
  }
  // splitmix64
  uint64_t value = (seed << 32) + number * 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  value ^= value >> 31;
  if (value % rate != 0)
    return 0;
  tell();
  return 1;
}

void *malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void *calloc(size_t number, size_t size) { return fails() ? NULL : __libc_calloc(number, size); }
void *realloc(void *old, size_t size) { return size != 0 && fails() ? NULL : __libc_realloc(old, size); }
void *memalign(size_t alignment, size_t size) { return fails() ? NULL : __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void **result, size_t alignment, size_t size) {
  void *memory = memalign(alignment, size);
  if (!memory)
    return ENOMEM;
  *result = memory;
  return 0;
}

static unsigned long number_of(const char *variable) {
  const char *text = getenv(variable);
  return text ? strtoul(text, NULL, 10) : 0;
}

// The handler of SIGFPE is installed when the first input is about to be read: MLIR's passes are registered by then, and its
// first context is made, which happens once for each process and outside of what is contained.
int sigaction(int signal, const struct sigaction *new, struct sigaction *old) {
  typedef int function(int, const struct sigaction *, struct sigaction *);
  if (signal == SIGFPE && new) {
    seed = number_of("GPULOWER_FAIL_SEED");
    rate = number_of("GPULOWER_FAIL_RATE");
    at = number_of("GPULOWER_FAIL_AT");
    run = number_of("GPULOWER_FAIL_RUN");
  }
  return ((function *)dlsym(RTLD_NEXT, "sigaction"))(signal, new, old);
}

// What runs at the end of a process is not the program's.
__attribute__((destructor)) static void stop(void) { rate = run = 0; }
