/* What two machines share through Redis. The argument is the server's program, and where its socket may be. */
#define _GNU_SOURCE
#include <gpulower.h>

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPECT(condition)                                                                                              \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                          \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

#define OK GPULOWER_STATUS_OK

static const char source[] = "gpu.module @m { gpu.func @k(%p: !llvm.ptr, %v: f32) kernel {\n"
                             "  llvm.store %v, %p : f32, !llvm.ptr\n"
                             "  gpu.return } }";

static pid_t server;
static char folder[] = "shared-XXXXXX";

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place) {
  (void)status, (void)kind, (void)place;
  return remove(path);
}

/* However it ends. */
static void clean_up(void) {
  if (server > 0) {
    kill(server, SIGTERM);
    waitpid(server, NULL, 0);
  }
  nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Starts the server, and waits until somebody listens. */
static void start(const char *program, const char *place) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  EXPECT(strlen(place) < sizeof address.sun_path);
  strcpy(address.sun_path, place);
  unlink(place);
  server = fork();
  EXPECT(server >= 0);
  if (server == 0) {
    execlp(program, program, "--port", "0", "--unixsocket", place, "--save", "", "--loglevel", "warning", NULL);
    perror(program);
    _exit(127);
  }
  for (;;) {
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    int connected = connect(client, (struct sockaddr *)&address, sizeof address);
    close(client);
    if (connected == 0)
      return;
    EXPECT(waitpid(server, NULL, WNOHANG) == 0);
    usleep(10000);
  }
}

static void note(void *data, const gpulower_progress *progress) {
  if (progress->event == GPULOWER_PROGRESS_FINISHED)
    *(int *)data = progress->from_cache;
}

/* Compiles with an empty cache of its own; whether the code came from elsewhere. */
static int compiled_elsewhere(const char *remote, const char *folder, uint8_t **code, size_t *length) {
  int from_cache = -1;
  gpulower_config *config;
  gpulower_compiler *compiler;
  gpulower_request *request;
  gpulower_result *result;
  EXPECT(gpulower_config_create(&config, NULL) == OK);
  EXPECT(gpulower_config_set(config, "cache", "true", NULL) == OK);
  EXPECT(gpulower_config_set(config, "cache-dir", folder, NULL) == OK);
  EXPECT(gpulower_config_set(config, "cache-remote", remote, NULL) == OK);
  EXPECT(gpulower_config_set_progress(config, note, &from_cache, NULL) == OK);
  EXPECT(gpulower_compiler_create(config, &compiler, NULL) == OK);
  EXPECT(gpulower_request_create(&request, NULL) == OK);
  EXPECT(gpulower_request_add_input(request, "k.mlir", (const uint8_t *)source, strlen(source), NULL) == OK);
  EXPECT(gpulower_request_set(request, "target", "gfx942", NULL) == OK);
  EXPECT(gpulower_request_set(request, "emit", "binary", NULL) == OK);
  EXPECT(gpulower_compile(compiler, request, NULL, &result) == OK);
  const uint8_t *bytes;
  EXPECT(gpulower_result_artifact_bytes(result, 0, &bytes, length) == OK);
  *code = malloc(*length);
  memcpy(*code, bytes, *length);
  EXPECT(gpulower_result_free(result) == OK && gpulower_request_free(request) == OK);
  /* What was made is uploaded by now. */
  EXPECT(gpulower_compiler_free(compiler) == OK && gpulower_config_free(config) == OK);
  return from_cache;
}

int main(int argc, char **argv) {
  EXPECT(argc == 3);
  char one[64], other[64], remote[256];
  EXPECT(mkdtemp(folder) != NULL);
  atexit(clean_up);
  snprintf(one, sizeof one, "%s/one", folder);
  snprintf(other, sizeof other, "%s/other", folder);
  start(argv[1], argv[2]);
  snprintf(remote, sizeof remote, "redis+unix://%s?deadline=60s", argv[2]);
  uint8_t *made, *taken;
  size_t made_length, taken_length;
  EXPECT(compiled_elsewhere(remote, one, &made, &made_length) == 0);
  EXPECT(compiled_elsewhere(remote, other, &taken, &taken_length) == 1);
  EXPECT(made_length == taken_length && memcmp(made, taken, made_length) == 0);
  free(made);
  free(taken);

  gpulower_config *config;
  gpulower_error *error;
  EXPECT(gpulower_config_create(&config, NULL) == OK);
  EXPECT(gpulower_config_set(config, "cache-remote", "redis//nothing", &error) == GPULOWER_STATUS_FAILED);
  EXPECT(strstr(gpulower_error_text(error), "is no URL"));
  EXPECT(gpulower_error_free(error) == OK && gpulower_config_free(config) == OK);
  puts("the second machine compiled nothing");
  return 0;
}
