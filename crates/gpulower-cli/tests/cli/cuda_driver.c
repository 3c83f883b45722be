// A stand-in for NVIDIA's driver, for libomptarget's CUDA plugin: a library libcuda.so.1 with one device. Its memory is the
// host's under addresses that the host cannot read; a launch runs the C function below that has the kernel's name, and is
// written to standard output. It refuses what the driver refuses: parameters of another size than the kernel's.
//
// LEADING=1: kernels have another pointer before their arguments. CHIP: such as 90.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define API __attribute__((visibility("default")))
enum { INVALID_VALUE = 1, NOT_FOUND = 500 };
static const uint64_t BASE = 0x100000000000, SIZE = 1ull << 32;
static char *memory;
static uint64_t used;

static void *host(uint64_t address) {
  if (address < BASE || address >= BASE + SIZE) {
    printf("not an address of the device: %llx\n", (unsigned long long)address);
    exit(3);
  }
  return memory + (address - BASE);
}
static const void *of_host(const void *address) {
  if ((uint64_t)address >= BASE && (uint64_t)address < BASE + SIZE) {
    printf("an address of the device instead of the host's\n");
    exit(3);
  }
  return address;
}

typedef struct { unsigned x, y, z; } sizes;
typedef struct {
  const char *name;
  int words;
  void (*run)(sizes grid, sizes block, unsigned shared, const uint64_t *arguments);
} kernel;
#include "cuda_kernels.c"
enum { KERNELS = sizeof(kernels) / sizeof(*kernels) };
static int leading(void) { return getenv("LEADING") != 0; }
static int parameters(const kernel *k) { return k->words + leading(); }

API int cuInit(unsigned flags) {
  if (!memory)
    memory = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return 0;
}
API int cuDriverGetVersion(int *version) { return *version = 12040, 0; }
API int cuGetErrorString(int status, const char **text) {
  return *text = status == INVALID_VALUE ? "invalid argument" : status == NOT_FOUND ? "named symbol not found" : "other", 0;
}
API int cuDeviceGetCount(int *count) { return *count = 1, 0; }
API int cuDeviceGet(int *device, int number) { return *device = number, 0; }
API int cuDeviceGetName(char *name, int size, int device) { return snprintf(name, size, "stand-in"), 0; }
API int cuDeviceGetUuid(char *uuid, int device) { return memset(uuid, 0, 16), 0; }
API int cuDeviceTotalMem_v2(size_t *size, int device) { return *size = SIZE, 0; }
API int cuDeviceGetAttribute(int *value, int attribute, int device) {
  int chip = getenv("CHIP") ? atoi(getenv("CHIP")) : 90;
  switch (attribute) {
  case 75: *value = chip / 10; break;       // compute capability
  case 76: *value = chip % 10; break;
  case 1: case 2: case 3: *value = 1024; break; // threads of a block
  case 5: *value = 0x7fffffff; break;       // blocks of a grid
  case 6: case 7: *value = 65535; break;
  case 10: *value = 32; break;              // warp
  case 16: *value = 132; break;             // multiprocessors
  case 12: *value = 65536; break;
  case 8: *value = 49152; break;            // shared memory
  default: *value = 0;
  }
  return 0;
}
API int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) { return *flags = 0, *active = 0, 0; }
API int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) { return 0; }
API int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = &used, 0; }
API int cuDevicePrimaryCtxRelease_v2(int device) { return 0; }
API int cuCtxSetCurrent(void *context) { return 0; }
API int cuCtxGetCurrent(void **context) { return *context = &used, 0; }
API int cuCtxGetDevice(int *device) { return *device = 0, 0; }
API int cuCtxGetLimit(size_t *value, int limit) { return *value = 1024, 0; }
API int cuCtxSetLimit(int limit, size_t value) { return 0; }

API int cuMemAlloc_v2(uint64_t *address, size_t size) {
  *address = BASE + used;
  used += (size + 511) & ~511ull;
  return 0;
}
API int cuMemAllocManaged(uint64_t *address, size_t size, unsigned flags) { return cuMemAlloc_v2(address, size); }
API int cuMemAllocAsync(uint64_t *address, size_t size, void *stream) { return cuMemAlloc_v2(address, size); }
API int cuMemFree_v2(uint64_t address) { return host(address), 0; }
API int cuMemFreeAsync(uint64_t address, void *stream) { return host(address), 0; }
API int cuMemAllocHost_v2(void **address, size_t size) { return *address = malloc(size), 0; }
API int cuMemFreeHost(void *address) { return free(address), 0; }
API int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream) {
  return memcpy(host(to), of_host(from), size), 0;
}
API int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream) {
  return memcpy((void *)of_host(to), host(from), size), 0;
}
API int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *stream) {
  return memcpy(host(to), host(from), size), 0;
}
API int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) { return cuMemcpyHtoDAsync_v2(to, from, size, 0); }
API int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) { return cuMemcpyDtoHAsync_v2(to, from, size, 0); }

// A module is its image: symbols are looked for among its strings.
static size_t image_size(const unsigned char *image) {
  uint64_t sections, size;
  memcpy(&sections, image + 40, 8);
  uint16_t count;
  memcpy(&count, image + 60, 2);
  size = sections + 64ull * count;
  for (int i = 0; i < count; ++i) {
    uint64_t offset, bytes;
    memcpy(&offset, image + sections + 64 * i + 24, 8);
    memcpy(&bytes, image + sections + 64 * i + 32, 8);
    if (image[sections + 64 * i + 4] != 8 && offset + bytes > size)
      size = offset + bytes;
  }
  return size;
}
static int has(const unsigned char *image, const char *name) {
  return memmem(image, image_size(image), name, strlen(name) + 1) != 0;
}
API int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
  printf("load abi %d\n", ((const unsigned char *)image)[8]);
  return *module = (void *)image, 0;
}
API int cuModuleUnload(void *module) { return 0; }
API int cuModuleGetFunction(const kernel **function, void *module, const char *name) {
  if (has(module, name))
    for (int i = 0; i < KERNELS; ++i)
      if (!strncmp(name, kernels[i].name, strlen(kernels[i].name)))
        return *function = &kernels[i], 0;
  return NOT_FOUND;
}
API int cuModuleGetGlobal_v2(uint64_t *address, size_t *size, void *module, const char *name) {
  static struct { char name[128]; uint64_t address; } globals[16];
  if (strncmp(name, "table", 5) || !has(module, name))
    return NOT_FOUND;
  for (int i = 0; i < 16; ++i) {
    if (!globals[i].name[0]) {
      snprintf(globals[i].name, sizeof globals[i].name, "%s", name);
      cuMemAlloc_v2(&globals[i].address, 16);
    }
    if (!strcmp(globals[i].name, name)) {
      if (address) *address = globals[i].address;
      if (size) *size = 16;
      return 0;
    }
  }
  return NOT_FOUND;
}
API int cuFuncGetAttribute(int *value, int attribute, const kernel *k) { return *value = attribute ? 0 : 1024, 0; }
API int cuFuncSetAttribute(const kernel *k, int attribute, int value) {
  return printf("attribute %d = %d\n", attribute, value), 0;
}
API int cuFuncGetParamInfo(const kernel *k, size_t index, size_t *offset, size_t *size) {
  if (index >= (size_t)parameters(k))
    return INVALID_VALUE;
  *offset = 8 * index;
  if (size) *size = 8;
  return 0;
}
API int cuLaunchKernel(const kernel *k, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, void *stream, void **pointers, void **extra) {
  uint64_t values[64];
  int count = parameters(k);
  if (extra) {
    if (*(size_t *)extra[3] != 8u * count) {
      printf("%s has %d bytes of parameters, and is given %zu\n", k->name, 8 * count, *(size_t *)extra[3]);
      return INVALID_VALUE;
    }
    memcpy(values, extra[1], 8 * count);
  } else {
    for (int i = 0; i < count; ++i)
      memcpy(&values[i], pointers[i], 8);
  }
  printf("launch %s grid %u %u %u block %u %u %u shared %u\n", k->name, gx, gy, gz, bx, by, bz, shared);
  sizes grid = {gx, gy, gz}, block = {bx, by, bz};
  k->run(grid, block, shared, values + leading());
  return 0;
}

#define NOTHING(name, ...) API int name(__VA_ARGS__) { return 0; }
API int cuStreamCreate(void **stream, unsigned flags) { return *stream = &used, 0; }
NOTHING(cuStreamDestroy_v2, void *stream)
NOTHING(cuStreamSynchronize, void *stream)
NOTHING(cuStreamQuery, void *stream)
NOTHING(cuStreamWaitEvent, void *stream, void *event, unsigned flags)
API int cuEventCreate(void **event, unsigned flags) { return *event = &used, 0; }
NOTHING(cuEventDestroy_v2, void *event)
NOTHING(cuEventDestroy, void *event)
NOTHING(cuEventRecord, void *event, void *stream)
NOTHING(cuEventQuery, void *event)
NOTHING(cuEventSynchronize, void *event)
#define MISSING(name) API int name(void) { return printf("%s was called\n", #name), 801; }
MISSING(cuStreamAddCallback) MISSING(cuLaunchHostFunc) MISSING(cuMemcpyPeerAsync) MISSING(cuCtxEnablePeerAccess)
MISSING(cuDeviceCanAccessPeer) MISSING(cuOccupancyMaxPotentialBlockSize) MISSING(cuMemGetInfo_v2)
MISSING(cuMemGetAllocationGranularity) MISSING(cuMemAddressReserve) MISSING(cuMemAddressFree) MISSING(cuMemMap)
MISSING(cuMemUnmap) MISSING(cuMemSetAccess) MISSING(cuMemCreate) MISSING(cuMemRelease) MISSING(cuMemGetInfo)
MISSING(cuDeviceTotalMem) MISSING(cuMemAllocHost)
MISSING(cuMemsetD8Async) MISSING(cuMemsetD16Async) MISSING(cuMemsetD32Async) MISSING(cuMemsetD2D8Async)
MISSING(cuMemsetD2D16Async) MISSING(cuMemsetD2D32Async)
