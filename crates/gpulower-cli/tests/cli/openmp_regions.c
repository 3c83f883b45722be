// Clang's own regions beside a kernel of gpulower, on the same memory. BARE: regions that need no device runtime.
#include <stdint.h>
#include <stdio.h>

#define MEMREF(name)                                                                                                   \
  float *name, float *name##_aligned, int64_t name##_offset, int64_t name##_size, int64_t name##_stride
void add_scaled(int64_t n, float factor, MEMREF(x), MEMREF(y));

#ifndef COUNT
enum { COUNT = 1000 };
#endif
static float x[COUNT], y[COUNT];

#ifdef BARE
static int64_t index_of_thread(void) { return 0; }
#pragma omp begin declare variant match(device = {arch(nvptx64)})
static int64_t index_of_thread(void) {
  return (int64_t)__nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x();
}
#pragma omp end declare variant

static void add(int64_t n) {
#pragma omp target teams ompx_bare num_teams((n + 255) / 256) thread_limit(256)
  {
    int64_t i = index_of_thread();
    if (i < n)
      y[i] += x[i];
  }
}
#else
static void add(int64_t n) {
#pragma omp target teams distribute parallel for
  for (int64_t i = 0; i < n; ++i)
    y[i] += x[i];
}
#endif

int main(void) {
  for (int i = 0; i < COUNT; ++i) {
    x[i] = i;
    y[i] = 1;
  }
#pragma omp target data map(to : x) map(tofrom : y)
  {
    add(COUNT);
#pragma omp target data use_device_addr(x, y)
    add_scaled(COUNT, 2, x, x, 0, COUNT, 1, y, y, 0, COUNT, 1);
    add(COUNT);
  }
  int wrong = 0;
  for (int i = 0; i < COUNT; ++i)
    wrong += y[i] != 4.0f * i + 1;
  printf("%d wrong of %d\n", wrong, COUNT);
  return wrong != 0;
}
