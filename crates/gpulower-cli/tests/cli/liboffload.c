// A program that starts a kernel by LLVM's liboffload, from a file that gpulower wrote.
//
//   liboffload FILE           starts saxpy of examples/app.mlir, and looks at what came of it
//   liboffload --valid FILE   says whether the library takes the file for the device
// The header uses `bool` in C.
#include <stdbool.h>

#include <offload/OffloadAPI.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1000 };

static void check(ol_result_t result, const char *what) {
  if (result == OL_SUCCESS)
    return;
  printf("%s failed: %s\n", what, result->Details ? result->Details : "");
  exit(1);
}

static ol_device_handle_t host, device;

/// The host, and the last other device.
static bool choose(ol_device_handle_t candidate, void *data) {
  ol_platform_handle_t platform;
  ol_platform_backend_t backend;
  check(olGetDeviceInfo(candidate, OL_DEVICE_INFO_PLATFORM, sizeof platform, &platform), "olGetDeviceInfo");
  check(olGetPlatformInfo(platform, OL_PLATFORM_INFO_BACKEND, sizeof backend, &backend), "olGetPlatformInfo");
  *(backend == OL_PLATFORM_BACKEND_HOST ? &host : &device) = candidate;
  return true;
}

/// A memref of one dimension, as a kernel takes it.
typedef struct {
  float *allocated, *aligned;
  int64_t offset, size, stride;
} memref;

static memref on_device(const float *values) {
  void *memory;
  check(olMemAlloc(device, OL_ALLOC_TYPE_DEVICE, COUNT * sizeof *values, &memory), "olMemAlloc");
  check(olMemcpy(0, memory, device, values, host, COUNT * sizeof *values), "olMemcpy");
  return (memref){memory, memory, 0, COUNT, 1};
}

int main(int count, char **words) {
  FILE *file = fopen(words[count - 1], "rb");
  static char image[1 << 20];
  size_t size = fread(image, 1, sizeof image, file);

  check(olInit(), "olInit");
  check(olIterateDevices(choose, 0), "olIterateDevices");
  if (!device) {
    puts("no device");
    return 2;
  }
  if (!strcmp(words[1], "--valid")) {
    bool valid;
    check(olIsValidBinary(device, image, size, &valid), "olIsValidBinary");
    puts(valid ? "valid" : "not valid");
    return 0;
  }

  ol_program_handle_t program;
  ol_symbol_handle_t kernel;
  check(olCreateProgram(device, image, size, &program), "olCreateProgram");
  check(olGetSymbol(program, "saxpy", OL_SYMBOL_KIND_KERNEL, &kernel), "olGetSymbol");
  float x[COUNT], y[COUNT];
  for (int i = 0; i < COUNT; ++i) {
    x[i] = i;
    y[i] = 1;
  }
  struct {
    int64_t count;
    float factor;
    memref x, y;
  } arguments = {COUNT, 2, on_device(x), on_device(y)};
  ol_kernel_launch_size_args_t sizes = {.Dimensions = 1, .NumGroups = {4, 1, 1}, .GroupSize = {256, 1, 1}};
  check(olLaunchKernel(0, device, kernel, &arguments, sizeof arguments, &sizes), "olLaunchKernel");
  check(olMemcpy(0, y, host, arguments.y.aligned, device, sizeof y), "olMemcpy");
  int wrong = 0;
  for (int i = 0; i < COUNT; ++i)
    wrong += y[i] != 2 * x[i] + 1;
  printf("%d wrong of %d\n", wrong, COUNT);
  check(olDestroyProgram(program), "olDestroyProgram");
  check(olShutDown(), "olShutDown");
  return wrong != 0;
}
