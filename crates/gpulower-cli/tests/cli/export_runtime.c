// A stand-in for libcudart and libamdhip64 for whole programs: it writes down what is registered and every call, and runs
// the kernels of examples/app.mlir and of the tests, which are given here in C. A kernel that is not registered cannot be
// launched.
//
// PREFIX is cuda or hip.
#define LaunchKernel LaunchRegistered
#include "../../../../tests/offload/registration.c"
#undef LaunchKernel
#include "../../../../tests/offload/runtime.c"

#define KERNEL(name) static void name(dim3 grid, dim3 block, size_t shared, void **arguments)

KERNEL(saxpy) {
  int64_t n = INTEGER(0);
  float a = *(float *)arguments[1], *x = (float *)POINTER(3), *y = (float *)POINTER(8);
  for (int64_t i = 0; i < n && i < (int64_t)grid.x * block.x; ++i)
    y[i] = a * x[i] + y[i];
}

KERNEL(turn_blocks) {
  int64_t n = INTEGER(0);
  float *from = (float *)POINTER(2), *to = (float *)POINTER(7);
  if (shared != 4 * block.x)
    abort();
  for (int64_t i = 0; i < n; ++i) {
    int64_t start = i - i % block.x, count = n - start < block.x ? n - start : block.x;
    to[i] = from[start + count - 1 - (i - start)];
  }
}

// The kernels of parts.mlir store the number of their part.
KERNEL(store) { *(int *)POINTER(1) = *(int *)arguments[5]; }

void test_registered(const void *handle, const char *name) {
  static const struct { const char *name; kernel_t kernel; } known[] = {
      {"saxpy", saxpy}, {"turn_blocks", turn_blocks}, {"store", store}};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
    size_t length = strlen(known[i].name);
    // Behind the name in the source there is a hash.
    if (!strncmp(name, known[i].name, length) && (!name[length] || !strncmp(name + length, "__", 2)))
      test_register(handle, known[i].name, known[i].kernel);
  }
}
