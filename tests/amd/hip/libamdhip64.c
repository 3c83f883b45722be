/* HIP's API on the executor of AMD code: for tests of programs that load and launch, on machines without AMD hardware.
 *
 * Names, numbers and layouts are those of AMD's hip_runtime_api.h (ROCm 7.2). Every call is carried out at once, so that
 * streams and events are numbers. Device memory is memory of this process, of which `python -m amdexec.hip` gets a copy for
 * each launch, and sends back what the kernel made of it. Environment: AMDEXEC_PYTHON, the interpreter; AMDEXEC_TARGET, the
 * chip. */
#define _GNU_SOURCE
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
  SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_CONFIGURATION = 9, NO_DEVICE = 100,
  INVALID_DEVICE = 101, INVALID_IMAGE = 200, NO_BINARY_FOR_GPU = 209, INVALID_HANDLE = 400, NOT_FOUND = 500,
  ILLEGAL_ADDRESS = 700, REGISTERED = 712, NOT_REGISTERED = 713, LAUNCH_FAILURE = 719, NOT_SUPPORTED = 801
};

static const struct { int code; const char *name, *text; } ERRORS[] = {
    {SUCCESS, "hipSuccess", "no error"},
    {INVALID_VALUE, "hipErrorInvalidValue", "invalid argument"},
    {OUT_OF_MEMORY, "hipErrorOutOfMemory", "out of memory"},
    {NOT_INITIALIZED, "hipErrorNotInitialized", "initialization error"},
    {INVALID_CONFIGURATION, "hipErrorInvalidConfiguration", "invalid configuration argument"},
    {NO_DEVICE, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {INVALID_DEVICE, "hipErrorInvalidDevice", "invalid device ordinal"},
    {INVALID_IMAGE, "hipErrorInvalidImage", "device kernel image is invalid"},
    {NO_BINARY_FOR_GPU, "hipErrorNoBinaryForGpu", "no kernel image is available for execution on the device"},
    {INVALID_HANDLE, "hipErrorInvalidHandle", "invalid resource handle"},
    {NOT_FOUND, "hipErrorNotFound", "named symbol not found"},
    {ILLEGAL_ADDRESS, "hipErrorIllegalAddress", "an illegal memory access was encountered"},
    {REGISTERED, "hipErrorHostMemoryAlreadyRegistered", "part or all of the requested memory range is already mapped"},
    {NOT_REGISTERED, "hipErrorHostMemoryNotRegistered", "pointer does not correspond to a registered memory region"},
    {LAUNCH_FAILURE, "hipErrorLaunchFailure", "unspecified launch failure"},
    {NOT_SUPPORTED, "hipErrorNotSupported", "operation not supported"},
};

#define API __attribute__((visibility("default"))) int
typedef struct { uint32_t offset, size; } Argument;
typedef struct Function {
  struct Function *next;
  char name[512];
  uint32_t module, lds, threads, scratch, registers, count;
  Argument *arguments;
} Function;
typedef struct Variable { struct Variable *next; char name[512]; uint64_t address, size; } Variable;
typedef struct Module { struct Module *next; uint32_t number; Function *functions; Variable *variables; } Module;
/* Whose a range of addresses is. The executor is told of all of them. */
enum { OF_DEVICE, OF_HOST, OF_MODULE };
typedef struct { uint64_t base, size; int kind; uint32_t module; void *mapping; size_t mapped; } Range;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int channel = -1, failed;
static Range *ranges;
static size_t range_count, range_room;
static Module *modules;
static uint32_t module_count;
static uint64_t next_address = 0x100000000000;

/* -- the executor */

static int whole(int out, void *bytes, size_t size) {
  for (char *at = bytes; size;) {
    ssize_t done = out ? send(channel, at, size, MSG_NOSIGNAL) : recv(channel, at, size, 0);
    if (done <= 0)
      return 0;
    at += done, size -= (size_t)done;
  }
  return 1;
}
static int put(const void *bytes, size_t size) { return whole(1, (void *)bytes, size); }
static int get(void *bytes, size_t size) { return whole(0, bytes, size); }

extern char **environ;

static int start(void) {
  if (channel >= 0)
    return SUCCESS;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
    return NO_DEVICE;
  const char *python = getenv("AMDEXEC_PYTHON"), *target = getenv("AMDEXEC_TARGET");
  char *words[] = {(char *)(python ? python : "python3"), "-m", "amdexec.hip", (char *)(target ? target : "gfx942"), NULL};
  posix_spawn_file_actions_t actions;
  pid_t child;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
  int wrong = posix_spawnp(&child, words[0], &actions, NULL, words, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  channel = ends[0];
  uint32_t ready = 0;
  if (wrong || !get(&ready, sizeof ready)) {
    fprintf(stderr, "libamdhip64 of the tests: %s -m amdexec.hip does not start\n", words[0]);
    close(channel);
    channel = -1;
    return NO_DEVICE;
  }
  return SUCCESS;
}

/* Sends the head of a question; the rest follows. */
static int ask(uint32_t kind, uint64_t size) { return put(&kind, sizeof kind) && put(&size, sizeof size); }

/* The answer: a code and bytes, of which a text is said where the code is an error's. */
static int answer(char **bytes, uint64_t *size) {
  uint32_t code;
  if (!get(&code, sizeof code) || !get(size, sizeof *size) || !(*bytes = calloc(1, *size + 1)))
    return LAUNCH_FAILURE;
  if (!get(*bytes, *size))
    code = LAUNCH_FAILURE;
  if (code != SUCCESS)
    fprintf(stderr, "libamdhip64 of the tests: %s\n", *bytes);
  return (int)code;
}

/* -- memory */

static Range *range_at(uint64_t address, uint64_t size) {
  for (size_t i = 0; i < range_count; i++)
    if (ranges[i].base <= address && address + size <= ranges[i].base + ranges[i].size)
      return &ranges[i];
  return NULL;
}

static int add_range(Range range) {
  if (range_count == range_room) {
    size_t room = 2 * range_room + 16;
    Range *larger = realloc(ranges, room * sizeof *ranges);
    if (!larger)
      return OUT_OF_MEMORY;
    ranges = larger, range_room = room;
  }
  size_t at = range_count++;
  for (; at && ranges[at - 1].base > range.base; at--)
    ranges[at] = ranges[at - 1];
  ranges[at] = range;
  return SUCCESS;
}

static void remove_range(Range *range) {
  if (range->mapping)
    munmap(range->mapping, range->mapped);
  memmove(range, range + 1, (size_t)(ranges + --range_count - range) * sizeof *range);
}

/* Memory of the device: room that belongs to nobody follows, and what is there at first is garbage. */
static int allocate(uint64_t *address, uint64_t size, int kind, uint32_t module) {
  size_t mapped = (size + 4095) & ~(uint64_t)4095;
  if (size > (uint64_t)1 << 34)
    return OUT_OF_MEMORY;
  void *memory = mmap((void *)next_address, mapped, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (memory == MAP_FAILED)
    return OUT_OF_MEMORY;
  next_address += (mapped + (2 << 20)) & ~(uint64_t)((1 << 20) - 1);
  if (kind == OF_DEVICE)
    memset(memory, 0xa5, size);
  *address = (uint64_t)memory;
  return add_range((Range){*address, size, kind, module, memory, mapped});
}

/* The first call of all starts the executor, as it does AMD's runtime. */
#define BEGIN pthread_mutex_lock(&lock); int code = start(); if (code == SUCCESS) code = failed; if (code == SUCCESS) do {
#define END } while (0); pthread_mutex_unlock(&lock); return code;
#define FAIL(error) { code = error; break; }

API hipMalloc(uint64_t *address, size_t size) {
  BEGIN *address = 0; if (size) code = allocate(address, size, OF_DEVICE, 0); END
}
API hipMallocAsync(uint64_t *address, size_t size, void *stream) { (void)stream; return hipMalloc(address, size); }
API hipMallocManaged(uint64_t *address, size_t size, unsigned flags) { (void)flags; return hipMalloc(address, size); }
API hipFree(uint64_t address) {
  BEGIN
  if (!address) break;
  Range *range = range_at(address, 1);
  if (!range || range->base != address || range->kind != OF_DEVICE) FAIL(INVALID_VALUE)
  remove_range(range);
  END
}
API hipFreeAsync(uint64_t address, void *stream) { (void)stream; return hipFree(address); }
API hipHostRegister(void *host, size_t size, unsigned flags) {
  (void)flags;
  BEGIN
  if (!host || !size) FAIL(INVALID_VALUE)
  if (range_at((uint64_t)host, 1) || range_at((uint64_t)host + size - 1, 1)) FAIL(REGISTERED)
  code = add_range((Range){(uint64_t)host, size, OF_HOST, 0, NULL, 0});
  END
}
API hipHostUnregister(void *host) {
  BEGIN
  Range *range = range_at((uint64_t)host, 1);
  if (!range || range->kind != OF_HOST || range->base != (uint64_t)host) FAIL(NOT_REGISTERED)
  remove_range(range);
  END
}
API hipHostGetDevicePointer(uint64_t *address, void *host, unsigned flags) {
  (void)flags;
  BEGIN
  Range *range = range_at((uint64_t)host, 1);
  if (!range || range->kind != OF_HOST) FAIL(INVALID_VALUE)
  *address = (uint64_t)host;
  END
}
/* `to` and `from` have to be of the device where they are said to be. */
static int copy(uint64_t to, int to_device, uint64_t from, int from_device, size_t size) {
  BEGIN
  if (!size) break;
  if ((to_device && !range_at(to, size)) || (from_device && !range_at(from, size)) || !to || !from) FAIL(INVALID_VALUE)
  memmove((void *)to, (void *)from, size);
  END
}
API hipMemcpyHtoDAsync(uint64_t to, const void *from, size_t size, void *stream) {
  (void)stream;
  return copy(to, 1, (uint64_t)from, 0, size);
}
API hipMemcpyDtoHAsync(void *to, uint64_t from, size_t size, void *stream) {
  (void)stream;
  return copy((uint64_t)to, 0, from, 1, size);
}
API hipMemcpyDtoDAsync(uint64_t to, uint64_t from, size_t size, void *stream) {
  (void)stream;
  return copy(to, 1, from, 1, size);
}
API hipMemcpyAsync(uint64_t to, uint64_t from, size_t size, unsigned kind, void *stream) {
  (void)stream;
  return copy(to, kind == 1 || kind == 3, from, kind == 2 || kind == 3, size);
}
API hipMemcpy(uint64_t to, uint64_t from, size_t size, unsigned kind) { return hipMemcpyAsync(to, from, size, kind, NULL); }
#define FILL(name, type)                                                                                                 \
  API name(uint64_t to, type value, size_t count, void *stream) {                                                        \
    (void)stream;                                                                                                        \
    BEGIN                                                                                                                \
    if (count && !range_at(to, count * sizeof value)) FAIL(INVALID_VALUE)                                                \
    for (size_t i = 0; i < count; i++) ((type *)to)[i] = value;                                                          \
    END                                                                                                                  \
  }
FILL(hipMemsetD8Async, uint8_t)
FILL(hipMemsetD16Async, uint16_t)
FILL(hipMemsetD32Async, uint32_t)
API hipMemsetAsync(uint64_t to, int value, size_t size, void *stream) {
  return hipMemsetD8Async(to, (uint8_t)value, size, stream);
}
API hipMemGetInfo(size_t *available, size_t *all) {
  BEGIN *available = *all = (size_t)1 << 34; END
}

/* -- devices */

API hipInit(unsigned flags) {
  (void)flags;
  pthread_mutex_lock(&lock);
  int code = start();
  pthread_mutex_unlock(&lock);
  return code;
}
API hipRuntimeGetVersion(int *version) { *version = 70200000; return SUCCESS; }
API hipGetDeviceCount(int *count) { *count = 1; return hipInit(0); }
API hipDeviceGet(int *device, int number) { *device = number; return number ? INVALID_DEVICE : SUCCESS; }
API hipSetDevice(int number) { return number ? INVALID_DEVICE : SUCCESS; }
API hipGetDevice(int *number) { *number = 0; return SUCCESS; }
API hipDeviceGetName(char *name, int room, int device) {
  snprintf(name, (size_t)room, "executor of AMD code");
  return device ? INVALID_DEVICE : SUCCESS;
}
API hipDeviceTotalMem(size_t *size, int device) { *size = (size_t)1 << 34; return device ? INVALID_DEVICE : SUCCESS; }
static const char *chip(void) { const char *target = getenv("AMDEXEC_TARGET"); return target ? target : "gfx942"; }
API hipGetDevicePropertiesR0600(void *properties, int device) {
  if (device) return INVALID_DEVICE;
  memset(properties, 0, 1472);
  hipDeviceGetName(properties, 256, 0);
  snprintf((char *)properties + 1160, 256, "%s", chip());
  return SUCCESS;
}
API hipDeviceGetAttribute(int *value, unsigned attribute, int device) {
  if (device) return INVALID_DEVICE;
  switch (attribute) {
  case 10: *value = 0; break; /* cooperative launches */
  case 26: case 27: case 28: case 56: *value = 1024; break;
  case 29: *value = 0x7fffffff; break;
  case 30: case 31: *value = 65535; break;
  case 63: *value = 4; break;
  case 71: case 74: case 10002: *value = 65536; break;
  case 87: *value = strncmp(chip(), "gfx9", 4) ? 32 : 64; break;
  case 88: *value = 1; break;
  default: return INVALID_VALUE;
  }
  return SUCCESS;
}

/* -- streams and events: everything has happened */

API hipDeviceSynchronize(void) { BEGIN END }
API hipDeviceGetStreamPriorityRange(int *least, int *greatest) { *least = *greatest = 0; return SUCCESS; }
API hipStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
  (void)flags, (void)priority;
  BEGIN if (!(*stream = malloc(1))) code = OUT_OF_MEMORY; END
}
API hipStreamCreateWithFlags(void **stream, unsigned flags) { return hipStreamCreateWithPriority(stream, flags, 0); }
API hipStreamDestroy(void *stream) { free(stream); return SUCCESS; }
API hipStreamQuery(void *stream) { (void)stream; return hipDeviceSynchronize(); }
API hipStreamSynchronize(void *stream) { (void)stream; return hipDeviceSynchronize(); }
API hipStreamWaitEvent(void *stream, void *event, unsigned flags) { (void)stream, (void)event, (void)flags; return hipDeviceSynchronize(); }
API hipEventCreateWithFlags(void **event, unsigned flags) { return hipStreamCreateWithPriority(event, flags, 0); }
API hipEventDestroy(void *event) { free(event); return SUCCESS; }
API hipEventRecord(void *event, void *stream) { (void)event, (void)stream; return hipDeviceSynchronize(); }
API hipEventQuery(void *event) { (void)event; return hipDeviceSynchronize(); }
API hipEventSynchronize(void *event) { (void)event; return hipDeviceSynchronize(); }
API hipEventElapsedTime(float *time, void *first, void *last) { (void)first, (void)last; *time = 0; return hipDeviceSynchronize(); }

/* -- modules */

/* An image states its own size: the end of an ELF file's section headers, or of a bundle's last entry. */
static uint64_t image_size(const unsigned char *image) {
  uint64_t end = 0;
  if (!memcmp(image, "\177ELF", 4)) {
    uint16_t entry, count;
    memcpy(&end, image + 40, 8), memcpy(&entry, image + 58, 2), memcpy(&count, image + 60, 2);
    return end + (uint64_t)entry * count;
  }
  if (memcmp(image, "__CLANG_OFFLOAD_BUNDLE__", 24))
    return 0;
  uint64_t count, at = 32;
  memcpy(&count, image + 24, 8);
  for (; count; count--) {
    uint64_t entry[3];
    memcpy(entry, image + at, 24);
    at += 24 + entry[2];
    if (entry[0] + entry[1] > end) end = entry[0] + entry[1];
  }
  return end;
}

/* Lines of words: `kernel NAME lds threads scratch registers count (offset size)*`, `variable NAME address size`. */
static void describe(Module *module, char *text, uint64_t base) {
  for (char *rest, *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
    int used = 0;
    Variable v = {module->variables, "", 0, 0};
    Function f = {.next = module->functions, .module = module->number};
    if (sscanf(line, "variable %511s %lu %lu", v.name, &v.address, &v.size) == 3) {
      v.address += base;
      module->variables = memcpy(malloc(sizeof v), &v, sizeof v);
    } else if (sscanf(line, "kernel %511s %u %u %u %u %u%n", f.name, &f.lds, &f.threads, &f.scratch, &f.registers, &f.count, &used) == 6) {
      f.arguments = calloc(f.count + 1, sizeof *f.arguments);
      char *at = line + used;
      for (uint32_t i = 0; i < f.count; i++) {
        f.arguments[i].offset = (uint32_t)strtoul(at, &at, 10);
        f.arguments[i].size = (uint32_t)strtoul(at, &at, 10);
      }
      module->functions = memcpy(malloc(sizeof f), &f, sizeof f);
    }
  }
}

API hipModuleLoadDataEx(void **result, const void *image, unsigned count, void *options, void *values) {
  (void)count, (void)options, (void)values;
  BEGIN
  uint64_t size = image ? image_size(image) : 0, base, length = 0;
  char *reply = NULL;
  if (!size) FAIL(INVALID_IMAGE)
  const uint32_t number = ++module_count;
  const uint64_t room = (uint64_t)64 << 20;
  if ((code = allocate(&base, room, OF_MODULE, number)) != SUCCESS) break;
  code = ask(1, 12 + size) && put(&number, 4) && put(&base, 8) && put(image, size) ? answer(&reply, &length) : LAUNCH_FAILURE;
  uint64_t loaded = 0;
  if (code == SUCCESS) memcpy(&loaded, reply, 8);
  if (code != SUCCESS || loaded > room) {
    remove_range(range_at(base, 1));
    free(reply);
    if (code == SUCCESS) code = OUT_OF_MEMORY;
    break;
  }
  memcpy((void *)base, reply + 8, loaded);
  range_at(base, 1)->size = loaded;
  Module *module = calloc(1, sizeof *module);
  module->number = number, module->next = modules, modules = module;
  describe(module, reply + 8 + loaded, base);
  free(reply);
  *result = module;
  END
}

static Module *module_of(void *handle) {
  Module *module = modules;
  while (module && module != handle) module = module->next;
  return module;
}

API hipModuleUnload(void *handle) {
  BEGIN
  Module *module = module_of(handle);
  if (!module) FAIL(INVALID_HANDLE)
  for (size_t i = 0; i < range_count; i++)
    if (ranges[i].kind == OF_MODULE && ranges[i].module == module->number) { remove_range(&ranges[i]); break; }
  Module **link = &modules;
  while (*link != module) link = &(*link)->next;
  *link = module->next;
  for (Function *f = module->functions, *next; f; f = next) next = f->next, free(f->arguments), free(f);
  for (Variable *v = module->variables, *next; v; v = next) next = v->next, free(v);
  free(module);
  END
}
API hipModuleGetFunction(void **result, void *handle, const char *name) {
  BEGIN
  Module *module = module_of(handle);
  if (!module) FAIL(INVALID_HANDLE)
  Function *f = module->functions;
  while (f && strcmp(f->name, name)) f = f->next;
  if (!f) FAIL(NOT_FOUND)
  *result = f;
  END
}
API hipModuleGetGlobal(uint64_t *address, size_t *size, void *handle, const char *name) {
  BEGIN
  Module *module = module_of(handle);
  if (!module) FAIL(INVALID_HANDLE)
  Variable *v = module->variables;
  while (v && strcmp(v->name, name)) v = v->next;
  if (!v) FAIL(NOT_FOUND)
  if (address) *address = v->address;
  if (size) *size = v->size;
  END
}
API hipFuncGetAttribute(int *value, unsigned attribute, void *function) {
  BEGIN
  const Function *f = function;
  switch (attribute) {
  case 0: *value = (int)f->threads; break;
  case 1: *value = (int)f->lds; break;
  case 3: *value = (int)f->scratch; break;
  case 4: *value = (int)f->registers; break;
  case 2: case 5: case 6: *value = 0; break;
  case 8: *value = 65536 - (int)f->lds; break;
  default: code = INVALID_VALUE;
  }
  END
}
API hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int size, size_t shared) {
  BEGIN *blocks = size <= (int)((Function *)function)->threads && shared + ((Function *)function)->lds <= 65536; END
}

/* -- launches */

static int send_launch(const Function *f, const uint32_t shape[7], void **parameters) {
  uint64_t size = 4 + 7 * 4 + 4 + 512, values = 0;
  for (uint32_t i = 0; i < f->count; i++) values += 4 + f->arguments[i].size;
  size += values + 4;
  for (size_t i = 0; i < range_count; i++) size += 16 + ranges[i].size;
  const uint32_t count = (uint32_t)range_count;
  int sent = ask(2, size) && put(&f->module, 4) && put(shape, 28) && put(f->name, 512) && put(&f->count, 4);
  for (uint32_t i = 0; sent && i < f->count; i++)
    sent = put(&f->arguments[i].size, 4) && put(parameters[i], f->arguments[i].size);
  sent = sent && put(&count, 4);
  for (uint32_t i = 0; sent && i < count; i++)
    sent = put(&ranges[i].base, 8) && put(&ranges[i].size, 8) && put((void *)ranges[i].base, ranges[i].size);
  return sent;
}

API hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void *stream, void **parameters, void **extra) {
  (void)stream;
  BEGIN
  const Function *f = function;
  const uint32_t shape[7] = {gx, gy, gz, bx, by, bz, shared};
  if (extra) FAIL(NOT_SUPPORTED)
  if (!gx || !gy || !gz || !bx || !by || !bz || (uint64_t)bx * by * bz > f->threads) FAIL(INVALID_CONFIGURATION)
  if (shared + f->lds > 65536) FAIL(INVALID_VALUE)
  char *reply = NULL, *at;
  uint64_t length = 0;
  int done = send_launch(f, shape, parameters) ? answer(&reply, &length) : LAUNCH_FAILURE;
  /* As with hardware, it is a later call that says so, and every one from then on. */
  if (done != SUCCESS) failed = done;
  at = reply;
  for (size_t i = 0; done == SUCCESS && i < range_count; at += ranges[i++].size)
    memcpy((void *)ranges[i].base, at, ranges[i].size);
  free(reply);
  END
}

/* -- programs that carry their code: what a constructor of theirs registers is loaded when something of it is launched */

typedef struct { uint32_t magic, version; const void *image; void *unused; } Wrapper;
typedef struct { const Wrapper *wrapper; void *module; } Carried;
typedef struct Kernel { struct Kernel *next; const void *handle; const char *name; Carried *carried; void *function; } Kernel;
typedef struct { uint32_t x, y, z; } Sizes;
static Kernel *kernels;

__attribute__((visibility("default"))) void *__hipRegisterFatBinary(const Wrapper *wrapper) {
  Carried *carried = calloc(1, sizeof *carried);
  carried->wrapper = wrapper;
  return carried;
}
__attribute__((visibility("default"))) void __hipUnregisterFatBinary(void *carried) { (void)carried; }
__attribute__((visibility("default"))) void __hipRegisterFunction(void *carried, const void *handle, const char *name) {
  Kernel *kernel = calloc(1, sizeof *kernel);
  *kernel = (Kernel){kernels, handle, name, carried, NULL};
  kernels = kernel;
}
#define NOT_THERE(name)                                                                                                  \
  __attribute__((visibility("default"))) void name(void) {                                                               \
    fprintf(stderr, "libamdhip64 of the tests: it has no " #name "\n");                                                  \
    abort();                                                                                                             \
  }
NOT_THERE(__hipRegisterVar)
NOT_THERE(__hipRegisterManagedVar)
NOT_THERE(__hipRegisterSurface)
NOT_THERE(__hipRegisterTexture)
API hipLaunchKernel(const void *handle, Sizes grid, Sizes block, void **parameters, size_t shared, void *stream) {
  Kernel *kernel = kernels;
  while (kernel && kernel->handle != handle) kernel = kernel->next;
  if (!kernel) return NOT_FOUND;
  Carried *carried = kernel->carried;
  int code = carried->module ? SUCCESS : hipModuleLoadDataEx(&carried->module, carried->wrapper->image, 0, NULL, NULL);
  if (code == SUCCESS && !kernel->function) code = hipModuleGetFunction(&kernel->function, carried->module, kernel->name);
  if (code != SUCCESS) return code;
  return hipModuleLaunchKernel(kernel->function, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared, stream,
                               parameters, NULL);
}

API hipDeviceReset(void) {
  pthread_mutex_lock(&lock);
  failed = SUCCESS;
  for (size_t i = range_count; i-- > 0;)
    if (ranges[i].kind == OF_DEVICE) remove_range(&ranges[i]);
  pthread_mutex_unlock(&lock);
  return SUCCESS;
}

__attribute__((visibility("default"))) const char *hipGetErrorName(int code) {
  for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
    if (ERRORS[i].code == code) return ERRORS[i].name;
  return "hipErrorUnknown";
}
__attribute__((visibility("default"))) const char *hipGetErrorString(int code) {
  for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
    if (ERRORS[i].code == code) return ERRORS[i].text;
  return "unknown error";
}
