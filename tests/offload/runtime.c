// A stand-in for libcudart and libamdhip64: device memory is the host's, a kernel is a C function that gets what a launch
// gives, and every call is written to standard output. FAIL=NAME[=STATUS] lets the function NAME fail.
//
// PREFIX is cuda or hip.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define RT(name) JOIN(PREFIX, name)
#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
#define SAY(...) (printf(__VA_ARGS__), fflush(stdout))

#ifndef DIM3
#define DIM3
typedef struct { uint32_t x, y, z; } dim3;
#endif
typedef void *stream_t;
typedef void (*kernel_t)(dim3 grid, dim3 block, size_t shared, void **arguments);

static struct { const void *handle; const char *name; kernel_t kernel; } kernels[64];
static int kernel_count;

void test_register(const void *handle, const char *name, kernel_t kernel) {
  kernels[kernel_count].handle = handle;
  kernels[kernel_count].name = name;
  kernels[kernel_count++].kernel = kernel;
}

static int status_of(const char *name) {
  const char *fail = getenv("FAIL");
  size_t length = strlen(name);
  if (!fail || strncmp(fail, name, length) || (fail[length] && fail[length] != '='))
    return 0;
  return fail[length] ? atoi(fail + length + 1) : 2;
}
#define STATUS(name) status_of(TEXT(PREFIX) #name)

const char *RT(GetErrorName)(int status) {
  return status == 2 ? TEXT(PREFIX) "ErrorMemoryAllocation"
       : status == 9 ? TEXT(PREFIX) "ErrorInvalidConfiguration" : TEXT(PREFIX) "ErrorUnknown";
}
const char *RT(GetErrorString)(int status) {
  return status == 2 ? "out of memory" : status == 9 ? "invalid configuration argument" : "unknown error";
}

int RT(Malloc)(void **memory, size_t size) {
  SAY("malloc %zu\n", size);
  *memory = malloc(size);
  return STATUS(Malloc);
}
int RT(MallocManaged)(void **memory, size_t size, unsigned flags) {
  SAY("malloc_managed %zu flags %u\n", size, flags);
  *memory = malloc(size);
  return STATUS(MallocManaged);
}
int RT(Free)(void *memory) {
  SAY("free\n");
  free(memory);
  return STATUS(Free);
}
static long numbers[4096];
static int stream_count, event_count;
static long number(void *handle) { return handle ? *(long *)handle : 0; }
int RT(MemcpyAsync)(void *to, const void *from, size_t size, int kind, stream_t stream) {
  SAY("memcpy %zu kind %d stream %ld\n", size, kind, number(stream));
  memcpy(to, from, size);
  return STATUS(MemcpyAsync);
}
int RT(MemsetAsync)(void *to, int value, size_t size, stream_t stream) {
  SAY("memset %d %zu stream %ld\n", value, size, number(stream));
  memset(to, value, size);
  return STATUS(MemsetAsync);
}
int RT(GetDevice)(int *device) {
  *device = 0;
  return STATUS(GetDevice);
}
int RT(SetDevice)(int device) {
  SAY("set_device %d\n", device);
  return STATUS(SetDevice);
}
int RT(StreamCreateWithFlags)(stream_t *stream, unsigned flags) {
  numbers[stream_count] = stream_count + 1;
  *stream = &numbers[stream_count++];
  SAY("stream_create %ld flags %u\n", number(*stream), flags);
  return STATUS(StreamCreateWithFlags);
}
int RT(StreamDestroy)(stream_t stream) {
  SAY("stream_destroy %ld\n", number(stream));
  return 0;
}
int RT(StreamSynchronize)(stream_t stream) {
  SAY("stream_synchronize %ld\n", number(stream));
  return STATUS(StreamSynchronize);
}
int RT(EventCreateWithFlags)(void **event, unsigned flags) {
  long *known = &numbers[2048 + event_count];
  *known = ++event_count;
  *event = known;
  SAY("event_create %ld flags %u\n", *known, flags);
  return STATUS(EventCreateWithFlags);
}
int RT(EventDestroy)(void *event) {
  SAY("event_destroy %ld\n", number(event));
  return STATUS(EventDestroy);
}
int RT(EventRecord)(void *event, stream_t stream) {
  SAY("event_record %ld stream %ld\n", number(event), number(stream));
  return STATUS(EventRecord);
}
int RT(EventSynchronize)(void *event) {
  SAY("event_synchronize %ld\n", number(event));
  return STATUS(EventSynchronize);
}
int RT(StreamWaitEvent)(stream_t stream, void *event, unsigned flags) {
  SAY("stream_wait_event %ld event %ld flags %u\n", number(stream), number(event), flags);
  return STATUS(StreamWaitEvent);
}
int RT(HostRegister)(void *memory, size_t size, unsigned flags) {
  SAY("host_register %zu flags %u\n", size, flags);
  return STATUS(HostRegister);
}
int RT(HostUnregister)(void *memory) {
  SAY("host_unregister\n");
  return STATUS(HostUnregister);
}
int RT(FuncSetAttribute)(const void *handle, int attribute, int value) {
  SAY("func_set_attribute %d = %d\n", attribute, value);
  return STATUS(FuncSetAttribute);
}

static int launch(const void *handle, dim3 grid, dim3 block, void **arguments, size_t shared, stream_t stream) {
  for (int i = 0; i < kernel_count; ++i)
    if (kernels[i].handle == handle) {
      SAY("launch %s grid %u %u %u block %u %u %u shared %zu stream %ld\n", kernels[i].name, grid.x, grid.y, grid.z,
          block.x, block.y, block.z, shared, number(stream));
      if (kernels[i].kernel)
        kernels[i].kernel(grid, block, shared, arguments);
      return STATUS(LaunchKernel);
    }
  SAY("launch of a handle that is not registered\n");
  return 98;
}
int RT(LaunchKernel)(const void *handle, dim3 grid, dim3 block, void **arguments, size_t shared, stream_t stream) {
  return launch(handle, grid, block, arguments, shared, stream);
}

// cudaLaunchConfig_t and cudaLaunchAttribute of driver_types.h.
struct attribute { int id; char pad[4]; union { char pad[64]; dim3 cluster; } value; };
struct config { dim3 grid, block; size_t shared; stream_t stream; struct attribute *attributes; unsigned count; };
int RT(LaunchKernelExC)(const struct config *config, const void *handle, void **arguments) {
  for (unsigned i = 0; i < config->count; ++i)
    SAY("attribute %d: %u %u %u\n", config->attributes[i].id, config->attributes[i].value.cluster.x,
        config->attributes[i].value.cluster.y, config->attributes[i].value.cluster.z);
  return launch(handle, config->grid, config->block, arguments, config->shared, config->stream);
}

// The parts of a memref descriptor among a kernel's arguments.
#define POINTER(i) (*(char **)arguments[i])
#define INTEGER(i) (*(int64_t *)arguments[i])
