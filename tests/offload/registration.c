// A stand-in for libcudart and libamdhip64 that writes every registration and launch to standard output.
//
// PREFIX is cuda or hip.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define RT(name) JOIN(PREFIX, name)
#define REGISTER(name) JOIN(JOIN(__, PREFIX), name)
#define SAY(...) (printf(__VA_ARGS__), fflush(stdout))

struct wrapper { uint32_t magic, version; const void *data, *unused; };
#ifndef DIM3
#define DIM3
typedef struct { uint32_t x, y, z; } dim3;
#endif

// Told of every kernel that is registered, if there is such a function.
__attribute__((weak)) void test_registered(const void *handle, const char *name);

static const void *handles[64];
static const char *names[64];
static int count, binaries;

void **REGISTER(RegisterFatBinary)(const struct wrapper *wrapper) {
  // CUDA's fat binary starts with 0xba55ed50, a bundle with its name.
  uint32_t head;
  memcpy(&head, wrapper->data, 4);
  SAY("fatbinary magic %x version %u data %x aligned %d\n", wrapper->magic, wrapper->version, head,
      (uintptr_t)wrapper->data % 4096 == 0 ? 4096 : (uintptr_t)wrapper->data % 8 == 0 ? 8 : 1);
  return (void **)&names[binaries++];
}
void REGISTER(RegisterFatBinaryEnd)(void **handle) {
  SAY("end %d\n", (int)((const char **)handle - names));
}
void REGISTER(UnregisterFatBinary)(void **handle) {
  SAY("unregister %d\n", (int)((const char **)handle - names));
}
void REGISTER(RegisterFunction)(void **handle, const void *address, char *device, const char *name, int limit, void *a,
                                void *b, void *c, void *d, int *e) {
  SAY("function %s %s limit %d in %d\n", device, name, limit, (int)((const char **)handle - names));
  handles[count] = address;
  names[count++] = name;
  if (test_registered)
    test_registered(address, name);
}
void REGISTER(RegisterVar)(void **handle, char *address, char *device, const char *name, int external, size_t size,
                           int constant, int global) {
  SAY("variable %s external %d size %zu constant %d\n", name, external, size, constant);
}
// The registration code that clang makes refers to these, whether or not there is anything to register with them.
void REGISTER(RegisterManagedVar)(void) { SAY("managed variable\n"); }
void REGISTER(RegisterSurface)(void) { SAY("surface\n"); }
void REGISTER(RegisterTexture)(void) { SAY("texture\n"); }

int RT(LaunchKernel)(const void *handle, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream) {
  for (int i = 0; i < count; ++i)
    if (handles[i] == handle) {
      SAY("launch %s grid %u block %u\n", names[i], grid.x, block.x);
      return 0;
    }
  SAY("launch of a handle that is not registered\n");
  return 98;
}
