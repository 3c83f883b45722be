// Clang's own regions beside a kernel of gpulower, on the same memory.
#include <stdint.h>
#include <stdio.h>

#define MEMREF(name)                                                                                                   \
  float *name, float *name##_aligned, int64_t name##_offset, int64_t name##_size, int64_t name##_stride
void add_scaled(int64_t n, float factor, MEMREF(x), MEMREF(y));

enum { COUNT = 1000 };
static float x[COUNT], y[COUNT];

static void add(int64_t n) {
#pragma omp target teams distribute parallel for
  for (int64_t i = 0; i < n; ++i)
    y[i] += x[i];
}

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
