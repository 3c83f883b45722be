/* Opens this library and others in the order of the arguments, and compiles after each: cleanly, into a fatal error of
 * LLVM, into a crash of MLIR, and cleanly again.
 *
 *   neighbours REFERENCE NAME.. : gpulower is this library, anything else a shared library, opened for all to see
 *
 * What comes out is the same as in the file REFERENCE, which is written if it is not there. */
#define _GNU_SOURCE
#include <gpulower.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS(F)                                                                                                   \
  F(gpulower_compiler_create)                                                                                          \
  F(gpulower_request_create)                                                                                           \
  F(gpulower_request_set)                                                                                              \
  F(gpulower_request_add_input)                                                                                        \
  F(gpulower_compile)                                                                                                  \
  F(gpulower_result_artifact_count)                                                                                    \
  F(gpulower_result_artifact_bytes)                                                                                    \
  F(gpulower_result_error)                                                                                             \
  F(gpulower_error_code)                                                                                               \
  F(gpulower_error_text)                                                                                               \
  F(gpulower_result_free)                                                                                              \
  F(gpulower_request_free)                                                                                             \
  F(gpulower_compiler_free)

#define DECLARE(name) static __typeof__(name) *p_##name;
FUNCTIONS(DECLARE)

static void fail(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static const char clean[] = "gpu.module @saxpy { gpu.func @saxpy(%p: memref<?xf32>, %a: f32) kernel {\n"
                            "  %i = gpu.global_id x\n"
                            "  %x = memref.load %p[%i] : memref<?xf32>\n"
                            "  %y = arith.mulf %x, %a : f32\n"
                            "  memref.store %y, %p[%i] : memref<?xf32>\n"
                            "  gpu.return } }";
/* sm_70 has no instruction for it, in any version of PTX. */
static const char fatal[] = "declare i32 @llvm.nvvm.redux.sync.add(i32, i32)\n"
                            "define ptx_kernel void @k(ptr %p) {\n"
                            "  %v = call i32 @llvm.nvvm.redux.sync.add(i32 1, i32 -1)\n"
                            "  store i32 %v, ptr %p ret void }";
/* MLIR 22 asks `index` for its bits, through a null pointer, while it reads the type. */
static const char crash[] =
    "gpu.module @m { gpu.func @k(%a: !amdgpu.tdm_gather_base<index, i32>) kernel { gpu.return } }";

static gpulower_compiler *compiler;

static gpulower_result *compiled(const char *name, const char *text, const char *targets) {
  gpulower_request *request;
  gpulower_result *result;
  if (p_gpulower_request_create(&request, NULL) ||
      p_gpulower_request_add_input(request, name, (const uint8_t *)text, strlen(text), NULL) ||
      p_gpulower_request_set(request, "target", targets, NULL) ||
      p_gpulower_request_set(request, "emit", strstr(targets, "sm_") ? "ptx" : "hsaco", NULL))
    fail("no request");
  p_gpulower_compile(compiler, request, NULL, &result);
  p_gpulower_request_free(request);
  return result;
}

/* Appends what comes of the kernel to a file. */
static void cleanly(const char *targets, FILE *to) {
  gpulower_result *result = compiled("clean.mlir", clean, targets);
  const uint8_t *bytes;
  size_t length;
  if (p_gpulower_result_artifact_bytes(result, 0, &bytes, &length) != GPULOWER_STATUS_OK)
    fail(p_gpulower_error_text(p_gpulower_result_error(result, 0)));
  fwrite(bytes, 1, length, to);
  p_gpulower_result_free(result);
}

static void badly(const char *name, const char *text, const char *target, const char *code, const char *words) {
  gpulower_result *result = compiled(name, text, target);
  const gpulower_error *error = p_gpulower_result_error(result, 0);
  if (!error || strcmp(p_gpulower_error_code(error), code) != 0 || !strstr(p_gpulower_error_text(error), words))
    fail(error ? p_gpulower_error_text(error) : "it should have failed");
  p_gpulower_result_free(result);
}

static void compile_all(const char *reference) {
  char *text;
  size_t length;
  FILE *made = open_memstream(&text, &length);
  cleanly("sm_90", made);
  badly("fatal.ll", fatal, "sm_70", "E0501", "LLVM fatal error: Cannot select");
  badly("crash.mlir", crash, "gfx942", "E1201", "SIGSEGV");
  cleanly("gfx942", made);
  fclose(made);
  FILE *file = fopen(reference, "rb");
  if (!file) {
    file = fopen(reference, "wb");
    if (!file || fwrite(text, 1, length, file) != length)
      fail("the reference cannot be written");
  } else {
    char *expected = malloc(length + 1);
    if (fread(expected, 1, length + 1, file) != length || memcmp(text, expected, length) != 0)
      fail("other bytes came out");
    free(expected);
  }
  fclose(file);
  free(text);
}

static void open_ours(void) {
  void *library = dlopen("libgpulower.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    fail(dlerror());
#define LOOK_UP(name)                                                                                                  \
  if (!(p_##name = (__typeof__(name) *)dlsym(library, #name)))                                                         \
    fail(#name);
  FUNCTIONS(LOOK_UP)
  if (p_gpulower_compiler_create(NULL, &compiler, NULL) != GPULOWER_STATUS_OK)
    fail("no compiler");
  /* It stays: threads of its own, and signal handlers. */
  dlclose(library);
}

int main(int argc, char **argv) {
  for (int i = 2; i < argc; ++i) {
    if (strcmp(argv[i], "gpulower") == 0)
      open_ours();
    else if (!dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL))
      fail(dlerror());
    if (compiler)
      compile_all(argv[1]);
  }
  if (p_gpulower_compiler_free(compiler) != GPULOWER_STATUS_OK)
    fail("the compiler is gone");
  return 0;
}
