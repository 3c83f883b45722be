/* Compiles a file of MLIR, LLVM IR or PTX and writes what comes of it.
 *
 *   cc compile.c $(pkg-config --cflags --libs gpulower) -o compile
 *   ./compile saxpy.mlir sm_90,gfx942 asm
 */
#include <gpulower.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints an error that a function handed out, and frees it. */
static int refused(gpulower_error *error) {
  fprintf(stderr, "%s\n", gpulower_error_text(error));
  gpulower_error_free(error);
  return 1;
}

static unsigned char *read_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (!file)
    return NULL;
  unsigned char *bytes = NULL;
  size_t capacity = 0;
  *length = 0;
  do {
    capacity = capacity ? 2 * capacity : 1 << 16;
    unsigned char *larger = realloc(bytes, capacity);
    if (!larger) {
      free(bytes);
      fclose(file);
      return NULL;
    }
    bytes = larger;
    *length += fread(bytes + *length, 1, capacity - *length, file);
  } while (*length == capacity);
  fclose(file);
  return bytes;
}

static int write_artifacts(const gpulower_result *result) {
  for (size_t i = 0; i < gpulower_result_artifact_count(result); ++i) {
    const uint8_t *bytes;
    size_t length;
    if (gpulower_result_artifact_bytes(result, i, &bytes, &length) != GPULOWER_STATUS_OK)
      return 1;
    char name[512];
    snprintf(name, sizeof name, "%s.%s.%s", gpulower_result_artifact_module(result, i),
             gpulower_result_artifact_targets(result, i), gpulower_result_artifact_format(result, i));
    FILE *file = fopen(name, "wb");
    if (!file || fwrite(bytes, 1, length, file) != length || fclose(file) != 0) {
      perror(name);
      return 1;
    }
    printf("%s: %zu bytes\n", name, length);
  }
  return 0;
}

int main(int argc, char **argv) {
  if (gpulower_api_version() >> 16 != GPULOWER_API_VERSION_MAJOR) {
    fprintf(stderr, "the library has another interface\n");
    return 1;
  }
  if (argc < 3) {
    fprintf(stderr, "usage: %s FILE TARGET[,TARGET..] [FORM]\n", argv[0]);
    return 2;
  }
  size_t length;
  unsigned char *bytes = read_file(argv[1], &length);
  if (!bytes) {
    perror(argv[1]);
    return 1;
  }
  gpulower_error *error;
  gpulower_config *config;
  gpulower_compiler *compiler;
  gpulower_request *request;
  if (gpulower_config_create(&config, &error) || gpulower_config_set(config, "environment", "true", &error) ||
      gpulower_compiler_create(config, &compiler, &error) || gpulower_request_create(&request, &error) ||
      gpulower_request_add_input(request, argv[1], bytes, length, &error) ||
      gpulower_request_set(request, "target", argv[2], &error) ||
      gpulower_request_set(request, "emit", argc > 3 ? argv[3] : "binary", &error))
    return refused(error);
  free(bytes);

  gpulower_result *result;
  int failed = gpulower_compile(compiler, request, NULL, &result) != GPULOWER_STATUS_OK;
  for (size_t i = 0; i < gpulower_result_warning_count(result); ++i)
    fprintf(stderr, "warning: %s\n", gpulower_error_text(gpulower_result_warning(result, i)));
  for (size_t i = 0; i < gpulower_result_error_count(result); ++i) {
    const gpulower_error *one = gpulower_result_error(result, i);
    fprintf(stderr, "%s: %s\n", gpulower_error_code(one), gpulower_error_text(one));
  }
  failed = failed || write_artifacts(result);
  gpulower_result_free(result);
  gpulower_request_free(request);
  gpulower_compiler_free(compiler);
  gpulower_config_free(config);
  return failed;
}
