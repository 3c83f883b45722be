// An allocator in which some allocations fail, for LD_PRELOAD: one in GPULOWER_FAIL_RATE, by the seed GPULOWER_FAIL_SEED.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static atomic_ulong count;
static unsigned long seed, rate;

static int fails(void) {
  if (rate == 0)
    return 0;
  uint64_t number = atomic_fetch_add(&count, 1);
  // splitmix64
  uint64_t value = (seed << 32) + number * 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  value ^= value >> 31;
  if (value % rate != 0)
    return 0;
  errno = ENOMEM;
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

// The handler of SIGFPE is installed when the first input is about to be read: MLIR's passes are registered by then, and its
// first context is made, which happens once for each process and outside of what is contained.
int sigaction(int signal, const struct sigaction *new, struct sigaction *old) {
  typedef int function(int, const struct sigaction *, struct sigaction *);
  if (signal == SIGFPE && new) {
    const char *text = getenv("GPULOWER_FAIL_SEED");
    seed = text ? strtoul(text, NULL, 10) : 0;
    text = getenv("GPULOWER_FAIL_RATE");
    rate = text ? strtoul(text, NULL, 10) : 0;
  }
  return ((function *)dlsym(RTLD_NEXT, "sigaction"))(signal, new, old);
}

// What runs at the end of a process is not the program's.
__attribute__((destructor)) static void stop(void) { rate = 0; }
