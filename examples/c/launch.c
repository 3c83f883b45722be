/* Compiles saxpy through the library and launches it with the CUDA driver, which is opened when the program runs.
 *
 *   cc launch.c $(pkg-config --cflags --libs gpulower) -ldl -o launch && ./launch
 *
 * Needs no CUDA to build, and ptxas (or nvPTXCompiler) only for `./launch cubin`: otherwise the driver compiles PTX. */
#include <gpulower.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char saxpy[] = "gpu.module @saxpy {\n"
                            "  gpu.func @saxpy(%x: !llvm.ptr, %y: !llvm.ptr, %a: f32, %n: i32) kernel {\n"
                            "    %id = gpu.global_id x\n"
                            "    %i = arith.index_cast %id : index to i32\n"
                            "    %inside = arith.cmpi slt, %i, %n : i32\n"
                            "    scf.if %inside {\n"
                            "      %px = llvm.getelementptr %x[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32\n"
                            "      %py = llvm.getelementptr %y[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32\n"
                            "      %vx = llvm.load %px : !llvm.ptr -> f32\n"
                            "      %vy = llvm.load %py : !llvm.ptr -> f32\n"
                            "      %p = arith.mulf %a, %vx : f32\n"
                            "      %s = arith.addf %p, %vy : f32\n"
                            "      llvm.store %s, %py : f32, !llvm.ptr\n"
                            "    }\n"
                            "    gpu.return\n"
                            "  }\n"
                            "}\n";

/* What is used of cuda.h: CUresult, CUdevice, CUdeviceptr and the handles. */
typedef int status;
typedef unsigned long long address;
static status (*cuInit)(unsigned);
static status (*cuDeviceGet)(int *, int);
static status (*cuDeviceGetAttribute)(int *, int, int);
static status (*cuDevicePrimaryCtxRetain)(void **, int);
static status (*cuCtxSetCurrent)(void *);
static status (*cuModuleLoadData)(void **, const void *);
static status (*cuModuleGetFunction)(void **, void *, const char *);
static status (*cuMemAlloc)(address *, size_t);
static status (*cuMemcpyHtoD)(address, const void *, size_t);
static status (*cuMemcpyDtoH)(void *, address, size_t);
static status (*cuLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                                void **, void **);
static status (*cuCtxSynchronize)(void);

static const struct {
  const char *name;
  void *place;
} functions[] = {
    {"cuInit", &cuInit},
    {"cuDeviceGet", &cuDeviceGet},
    {"cuDeviceGetAttribute", &cuDeviceGetAttribute},
    {"cuDevicePrimaryCtxRetain", &cuDevicePrimaryCtxRetain},
    {"cuCtxSetCurrent", &cuCtxSetCurrent},
    {"cuModuleLoadData", &cuModuleLoadData},
    {"cuModuleGetFunction", &cuModuleGetFunction},
    {"cuMemAlloc_v2", &cuMemAlloc},
    {"cuMemcpyHtoD_v2", &cuMemcpyHtoD},
    {"cuMemcpyDtoH_v2", &cuMemcpyDtoH},
    {"cuLaunchKernel", &cuLaunchKernel},
    {"cuCtxSynchronize", &cuCtxSynchronize},
};

/* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR of cuda.h. */
enum { MAJOR = 75, MINOR = 76 };

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    status code = (call);                                                                                              \
    if (code != 0) {                                                                                                   \
      fprintf(stderr, "%s: error %d\n", #call, code);                                                                  \
      return 1;                                                                                                        \
    }                                                                                                                  \
  } while (0)

/* The kernel for the chip `sm_MAJORMINOR`. */
static gpulower_result *compiled(const char *target, const char *form) {
  gpulower_error *error;
  gpulower_config *config;
  gpulower_compiler *compiler;
  gpulower_request *request;
  gpulower_result *result;
  if (gpulower_config_create(&config, &error) || gpulower_config_set(config, "environment", "true", &error) ||
      gpulower_compiler_create(config, &compiler, &error) || gpulower_request_create(&request, &error) ||
      gpulower_request_add_input(request, "saxpy.mlir", (const uint8_t *)saxpy, strlen(saxpy), &error) ||
      gpulower_request_set(request, "target", target, &error) || gpulower_request_set(request, "emit", form, &error)) {
    fprintf(stderr, "%s\n", gpulower_error_text(error));
    return NULL;
  }
  gpulower_compile(compiler, request, NULL, &result);
  for (size_t i = 0; i < gpulower_result_error_count(result); ++i)
    fprintf(stderr, "%s\n", gpulower_error_text(gpulower_result_error(result, i)));
  gpulower_request_free(request);
  gpulower_compiler_free(compiler);
  gpulower_config_free(config);
  return result;
}

int main(int argc, char **argv) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver) {
    fprintf(stderr, "there is no NVIDIA driver here: %s\n", dlerror());
    return 77;
  }
  for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i) {
    void *function = dlsym(driver, functions[i].name);
    if (!function) {
      fprintf(stderr, "the driver has no %s\n", functions[i].name);
      return 1;
    }
    memcpy(functions[i].place, &function, sizeof function);
  }
  int device, major, minor;
  void *context;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDeviceGetAttribute(&major, MAJOR, device));
  CHECK(cuDeviceGetAttribute(&minor, MINOR, device));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));

  char target[32];
  snprintf(target, sizeof target, "sm_%d%d", major, minor);
  gpulower_result *result = compiled(target, argc > 1 ? argv[1] : "ptx");
  const uint8_t *image;
  size_t length;
  if (gpulower_result_artifact_bytes(result, 0, &image, &length) != GPULOWER_STATUS_OK)
    return 1;
  void *module, *function;
  CHECK(cuModuleLoadData(&module, image));
  CHECK(cuModuleGetFunction(&function, module, "saxpy"));

  enum { count = 1000 };
  float x[count], y[count];
  for (int i = 0; i < count; ++i) {
    x[i] = (float)i;
    y[i] = 1;
  }
  address on_device_x, on_device_y;
  CHECK(cuMemAlloc(&on_device_x, sizeof x));
  CHECK(cuMemAlloc(&on_device_y, sizeof y));
  CHECK(cuMemcpyHtoD(on_device_x, x, sizeof x));
  CHECK(cuMemcpyHtoD(on_device_y, y, sizeof y));
  float a = 2;
  int n = count;
  void *arguments[] = {&on_device_x, &on_device_y, &a, &n};
  CHECK(cuLaunchKernel(function, (count + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, arguments, NULL));
  CHECK(cuCtxSynchronize());
  CHECK(cuMemcpyDtoH(y, on_device_y, sizeof y));
  for (int i = 0; i < count; ++i)
    if (y[i] != 2 * (float)i + 1) {
      fprintf(stderr, "y[%d] is %g\n", i, y[i]);
      return 1;
    }
  printf("saxpy on %s: %s of %zu bytes, %d right results\n", target, gpulower_result_artifact_format(result, 0), length,
         count);
  gpulower_result_free(result);
  return 0;
}
