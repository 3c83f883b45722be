// Loaded before a CUDA program whose runtime is a shared library (LD_PRELOAD): gives it other machine code than it was
// linked with, and writes down how long its kernels ran.
//
//   PROGRAM_CODE=PREFIX   the code that the program registers first is read from PREFIX.0.cubin, the second from
//   PREFIX.1.cubin; a
//                         file that is not there leaves what the program has
//   PROGRAM_TIMES=FILE    a line for each kernel: name, launches, median and sum of nanoseconds, registers; separated
//   by tabs
//
// cc -O2 -shared -fPIC fatbins.c -o fatbins.so -I CUPTI/include -I CUDA/include -L CUPTI/lib -l:libcupti.so.13 -ldl

#define _GNU_SOURCE
#include <cupti.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What nvcc and clang hand to __cudaRegisterFatBinary.
struct wrapper {
  int magic, version;
  const void *code;
  void *more;
};

struct kernel {
  char *name;
  uint64_t *times;
  size_t count, capacity;
  unsigned registers;
};

enum { most_kernels = 1024 };
static struct kernel kernels[most_kernels];
static size_t kernel_count;

static void *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file)
    return NULL;
  fseek(file, 0, SEEK_END);
  size_t size = (size_t)ftell(file);
  rewind(file);
  void *bytes = aligned_alloc(64, (size + 64) / 64 * 64);
  if (bytes && fread(bytes, 1, size, file) != size) {
    free(bytes);
    bytes = NULL;
  }
  fclose(file);
  return bytes;
}

void **__cudaRegisterFatBinary(void *registered) {
  static void **(*next)(void *);
  static int number;
  if (!next)
    next = (void **(*)(void *))dlsym(RTLD_NEXT, "__cudaRegisterFatBinary");
  const char *prefix = getenv("PROGRAM_CODE");
  if (prefix) {
    char path[4096];
    snprintf(path, sizeof path, "%s.%d.cubin", prefix, number++);
    void *code = read_file(path);
    struct wrapper *wrapper = code ? malloc(sizeof *wrapper) : NULL;
    if (wrapper) {
      *wrapper = *(struct wrapper *)registered;
      wrapper->code = code;
      registered = wrapper;
    }
  }
  return next(registered);
}

static void add(const CUpti_ActivityKernel10 *launch) {
  size_t i = 0;
  while (i < kernel_count && strcmp(kernels[i].name, launch->name) != 0)
    i++;
  if (i == most_kernels)
    return;
  struct kernel *kernel = &kernels[i];
  if (i == kernel_count) {
    kernel_count++;
    kernel->name = strdup(launch->name);
    kernel->registers = launch->registersPerThread;
  }
  if (kernel->count == kernel->capacity) {
    kernel->capacity = kernel->capacity ? 2 * kernel->capacity : 64;
    kernel->times = realloc(kernel->times, kernel->capacity * sizeof *kernel->times);
  }
  kernel->times[kernel->count++] = launch->end - launch->start;
}

static void CUPTIAPI want_buffer(uint8_t **buffer, size_t *size, size_t *most_records) {
  *size = 4 << 20;
  *buffer = aligned_alloc(8, *size);
  *most_records = 0;
}

static void CUPTIAPI read_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
  (void)context, (void)stream, (void)size;
  CUpti_Activity *record = NULL;
  while (valid && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
      add((const CUpti_ActivityKernel10 *)record);
  free(buffer);
}

static int by_size(const void *one, const void *other) {
  uint64_t left = *(const uint64_t *)one, right = *(const uint64_t *)other;
  return (left > right) - (left < right);
}

static void write_times(void) {
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  FILE *file = fopen(getenv("PROGRAM_TIMES"), "w");
  if (!file)
    return;
  for (size_t i = 0; i < kernel_count; i++) {
    struct kernel *kernel = &kernels[i];
    uint64_t sum = 0;
    for (size_t j = 0; j < kernel->count; j++)
      sum += kernel->times[j];
    qsort(kernel->times, kernel->count, sizeof *kernel->times, by_size);
    fprintf(file, "%s\t%zu\t%llu\t%llu\t%u\n", kernel->name, kernel->count,
            (unsigned long long)kernel->times[kernel->count / 2], (unsigned long long)sum, kernel->registers);
  }
  fclose(file);
}

__attribute__((constructor)) static void start(void) {
  if (!getenv("PROGRAM_TIMES"))
    return;
  cuptiActivityRegisterCallbacks(want_buffer, read_buffer);
  cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  atexit(write_times);
}
