/* What the interface does with calls that make no sense, and with everything that a program can ask. */
#define _GNU_SOURCE
#include <gpulower.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXPECT(condition)                                                                                              \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                          \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

#define OK GPULOWER_STATUS_OK

static const char good[] = "gpu.module @m { gpu.func @k(%p: !llvm.ptr, %v: f32) kernel {\n"
                           "  llvm.store %v, %p : f32, !llvm.ptr\n"
                           "  gpu.return } }";
static const char bad[] = "gpu.module @m { gpu.func @k(%p: !llvm.ptr) kernel {\n"
                          "  %v = llvm.call @nowhere() : () -> f32\n"
                          "  llvm.store %v, %p : f32, !llvm.ptr\n"
                          "  gpu.return }\n"
                          "  llvm.func @nowhere() -> f32 }";

static int contains(const char *text, const char *part) { return text && strstr(text, part); }

/* An error whose text has the words, and nothing else happened. */
/* The address, since C does not say which argument is looked at first. */
static void refused(gpulower_status got, gpulower_status expected, gpulower_error **place, const char *words) {
  gpulower_error *error = *place;
  if (got != expected || !contains(gpulower_error_text(error), words)) {
    fprintf(stderr, "status %d, %s; expected %d, %s\n", got, gpulower_error_text(error), expected, words);
    exit(1);
  }
  EXPECT(gpulower_error_code(error) != NULL);
  EXPECT(gpulower_error_free(error) == OK);
}

static gpulower_request *request_of(const char *name, const char *text, const char *target, const char *emit) {
  gpulower_request *request;
  EXPECT(gpulower_request_create(&request, NULL) == OK);
  EXPECT(gpulower_request_add_input(request, name, (const uint8_t *)text, strlen(text), NULL) == OK);
  if (target)
    EXPECT(gpulower_request_set(request, "target", target, NULL) == OK);
  EXPECT(gpulower_request_set(request, "emit", emit, NULL) == OK);
  return request;
}

static void misuse(gpulower_compiler *compiler) {
  gpulower_error *error;
  gpulower_config *config;
  gpulower_request *request;
  gpulower_result *result;
  refused(gpulower_config_create(NULL, &error), GPULOWER_STATUS_INVALID_ARGUMENT, &error, "config is NULL");
  refused(gpulower_config_set(NULL, "O", "1", &error), GPULOWER_STATUS_INVALID_HANDLE, &error, "config is NULL");
  EXPECT(gpulower_config_set(NULL, NULL, NULL, NULL) == GPULOWER_STATUS_INVALID_HANDLE);
  EXPECT(gpulower_config_create(&config, &error) == OK && error == NULL);
  refused(gpulower_config_set(config, NULL, "1", &error), GPULOWER_STATUS_INVALID_ARGUMENT, &error, "key is NULL");
  refused(gpulower_config_set(config, "O", "\xff", &error), GPULOWER_STATUS_INVALID_ARGUMENT, &error, "not UTF-8");
  refused(gpulower_config_set(config, "O", "4", &error), GPULOWER_STATUS_FAILED, &error, "expected 0|1|2|3");
  refused(gpulower_config_set(config, "max-register", "4", &error), GPULOWER_STATUS_FAILED, &error,
          "did you mean max-registers?");
  refused(gpulower_config_set(config, "threads", "0", &error), GPULOWER_STATUS_FAILED, &error, "above 0");
  refused(gpulower_config_set(config, "cuda", "/nowhere", &error), GPULOWER_STATUS_FAILED, &error, "'cuda'");
  refused(gpulower_config_set((gpulower_config *)compiler, "O", "1", &error), GPULOWER_STATUS_INVALID_HANDLE, &error,
          "config is a gpulower_compiler, not a gpulower_config");
  EXPECT(gpulower_compiler_free((gpulower_compiler *)config) == GPULOWER_STATUS_INVALID_HANDLE);
  EXPECT(gpulower_config_free(config) == OK);
  EXPECT(gpulower_config_free(config) == GPULOWER_STATUS_INVALID_HANDLE);
  EXPECT(gpulower_config_free(NULL) == OK);
  refused(gpulower_config_set(config, "O", "1", &error), GPULOWER_STATUS_INVALID_HANDLE, &error, "was freed");
  gpulower_compiler *none;
  refused(gpulower_compiler_create(config, &none, &error), GPULOWER_STATUS_INVALID_HANDLE, &error, "was freed");
  EXPECT(none == NULL);
  /* An address of this program is no handle. */
  int here;
  refused(gpulower_request_set((gpulower_request *)&here, "O", "1", &error), GPULOWER_STATUS_INVALID_HANDLE, &error,
          "no handle of this library");

  EXPECT(gpulower_request_create(&request, NULL) == OK);
  refused(gpulower_request_add_input(request, "k.mlir", NULL, 3, &error), GPULOWER_STATUS_INVALID_ARGUMENT, &error,
          "data is NULL, with a length of 3");
  refused(gpulower_request_add_input(request, "k.mlir", (const uint8_t *)&here, SIZE_MAX, &error),
          GPULOWER_STATUS_INVALID_ARGUMENT, &error, "cannot have a length");
  refused(gpulower_request_set(request, "target", "sm_1", &error), GPULOWER_STATUS_FAILED, &error, "sm_1");
  refused(gpulower_request_set(request, "emit", "elf", &error), GPULOWER_STATUS_FAILED, &error,
          "unknown output format");
  EXPECT(gpulower_compile(compiler, request, NULL, NULL) == GPULOWER_STATUS_INVALID_ARGUMENT);
  EXPECT(gpulower_compile(compiler, request, NULL, &result) == GPULOWER_STATUS_INVALID_ARGUMENT);
  EXPECT(gpulower_result_error_count(result) == 1 && gpulower_result_artifact_count(result) == 0);
  EXPECT(contains(gpulower_error_text(gpulower_result_error(result, 0)), "request has no input"));
  const gpulower_error *part = gpulower_result_error(result, 0);
  EXPECT(gpulower_error_free((gpulower_error *)part) == GPULOWER_STATUS_INVALID_HANDLE);
  EXPECT(gpulower_result_error(result, 1) == NULL);
  EXPECT(gpulower_result_free(result) == OK);
  EXPECT(gpulower_error_text(part) == NULL && gpulower_error_line(part) == 0);
  EXPECT(gpulower_error_input(part) == GPULOWER_NO_INPUT);
  EXPECT(gpulower_compile(NULL, request, NULL, &result) == GPULOWER_STATUS_INVALID_HANDLE);
  EXPECT(gpulower_result_free(result) == OK);
  EXPECT(gpulower_compile(compiler, request, (gpulower_cancellation *)compiler, &result) ==
         GPULOWER_STATUS_INVALID_HANDLE);
  EXPECT(gpulower_result_free(result) == OK);
  EXPECT(gpulower_result_report(NULL) == NULL && gpulower_result_artifact_count(NULL) == 0);
  EXPECT(gpulower_request_free(request) == OK);
  EXPECT(gpulower_inspect(NULL, NULL, 0, NULL, &result) == GPULOWER_STATUS_INVALID_ARGUMENT);
  EXPECT(gpulower_result_free(result) == OK);
  EXPECT(strcmp(gpulower_status_text(-5), "unknown status") == 0);
}

static void compiles(gpulower_compiler *compiler) {
  gpulower_result *result;
  gpulower_request *request = request_of("good.mlir", good, "sm_90,gfx942", "asm");
  /* Empty inputs and such are for the library to refuse, each by its number. */
  EXPECT(gpulower_request_add_input(request, "bad.mlir", (const uint8_t *)bad, strlen(bad), NULL) == OK);
  EXPECT(gpulower_request_add_input(request, "empty.mlir", NULL, 0, NULL) == OK);
  EXPECT(gpulower_compile(compiler, request, NULL, &result) == GPULOWER_STATUS_FAILED);
  EXPECT(gpulower_result_artifact_count(result) == 0);
  EXPECT(gpulower_result_free(result) == OK);
  EXPECT(gpulower_request_set(request, "keep-going", "true", NULL) == OK);
  EXPECT(gpulower_compile(compiler, request, NULL, &result) == GPULOWER_STATUS_FAILED);
  EXPECT(gpulower_result_artifact_count(result) == 2 && gpulower_result_error_count(result) >= 3);
  const gpulower_error *error = gpulower_result_error(result, 0);
  EXPECT(strcmp(gpulower_error_code(error), "E0401") == 0 && strcmp(gpulower_error_stage(error), "link") == 0);
  EXPECT(strcmp(gpulower_error_module(error), "m") == 0 && strcmp(gpulower_error_target(error), "sm_90") == 0);
  EXPECT(gpulower_error_kernel_count(error) == 1 && strcmp(gpulower_error_kernel(error, 0), "k") == 0);
  EXPECT(gpulower_error_kernel(error, 1) == NULL);
  EXPECT(strcmp(gpulower_error_file(error), "bad.mlir") == 0 && gpulower_error_line(error) == 2);
  EXPECT(gpulower_error_column(error) > 0 && contains(gpulower_error_location(error), "\"bad.mlir\":2:"));
  EXPECT(contains(gpulower_error_message(error), "nowhere") && gpulower_error_input(error) == 1);
  for (size_t i = 0; i < 2; ++i) {
    const uint8_t *bytes;
    size_t length, copied;
    EXPECT(gpulower_result_artifact_bytes(result, i, &bytes, &length) == OK && length > 100 && bytes[length] == 0);
    EXPECT(gpulower_result_artifact_copy(result, i, NULL, 0, &copied) == GPULOWER_STATUS_BUFFER_TOO_SMALL);
    EXPECT(copied == length);
    uint8_t *copy = malloc(copied);
    EXPECT(gpulower_result_artifact_copy(result, i, copy, copied, &copied) == OK && !memcmp(copy, bytes, length));
    EXPECT(gpulower_result_artifact_copy(result, i, NULL, length, &copied) == GPULOWER_STATUS_INVALID_ARGUMENT);
    free(copy);
    EXPECT(gpulower_result_artifact_input(result, i) == 0);
    EXPECT(strcmp(gpulower_result_artifact_module(result, i), "m") == 0);
  }
  size_t length;
  const uint8_t *bytes;
  EXPECT(gpulower_result_artifact_bytes(result, 2, &bytes, &length) == GPULOWER_STATUS_OUT_OF_RANGE);
  EXPECT(gpulower_result_artifact_bytes(result, 0, NULL, &length) == GPULOWER_STATUS_INVALID_ARGUMENT);
  EXPECT(strcmp(gpulower_result_artifact_format(result, 0), "ptx") == 0);
  EXPECT(strcmp(gpulower_result_artifact_targets(result, 1), "gfx942") == 0);
  EXPECT(contains(gpulower_result_report(result), "{\"schema\":1,\"version\":"));
  EXPECT(gpulower_result_free(result) == OK);
  EXPECT(gpulower_request_free(request) == OK);

  /* No target at all. */
  request = request_of("k.ll", "define ptx_kernel void @k() { ret void }", NULL, "ptx");
  EXPECT(gpulower_compile(compiler, request, NULL, &result) == GPULOWER_STATUS_FAILED);
  EXPECT(strcmp(gpulower_error_code(gpulower_result_error(result, 0)), "E0201") == 0);
  EXPECT(gpulower_result_free(result) == OK);
  EXPECT(gpulower_request_free(request) == OK);
}

static void other_operations(gpulower_compiler *compiler) {
  gpulower_result *result;
  gpulower_request *request = request_of("k.mlir", good, "gfx942", "hsaco");
  EXPECT(gpulower_plan(compiler, request, &result) == OK);
  EXPECT(contains(gpulower_result_report(result), "\"stage\":\"link-object\""));
  EXPECT(gpulower_result_free(result) == OK);

  gpulower_result *object;
  EXPECT(gpulower_request_set(request, "emit", "object", NULL) == OK);
  EXPECT(gpulower_compile(compiler, request, NULL, &object) == OK);
  const uint8_t *bytes;
  size_t length;
  EXPECT(gpulower_result_artifact_bytes(object, 0, &bytes, &length) == OK);
  gpulower_request *link;
  EXPECT(gpulower_request_create(&link, NULL) == OK);
  EXPECT(gpulower_request_add_input(link, "k.o", bytes, length, NULL) == OK);
  EXPECT(gpulower_link(compiler, link, NULL, &result) == GPULOWER_STATUS_INVALID_ARGUMENT);
  EXPECT(gpulower_result_free(result) == OK);
  EXPECT(gpulower_request_set(link, "target", "gfx942", NULL) == OK);
  EXPECT(gpulower_link(compiler, link, NULL, &result) == OK);
  EXPECT(strcmp(gpulower_result_artifact_format(result, 0), "hsaco") == 0);
  gpulower_result *packed, *inspected;
  gpulower_request *pack;
  EXPECT(gpulower_result_artifact_bytes(result, 0, &bytes, &length) == OK);
  EXPECT(gpulower_request_create(&pack, NULL) == OK);
  EXPECT(gpulower_request_add_image(pack, "k.hsaco", NULL, bytes, length, NULL) == OK);
  EXPECT(gpulower_pack(compiler, pack, &packed) == GPULOWER_STATUS_INVALID_ARGUMENT);
  EXPECT(gpulower_result_free(packed) == OK);
  EXPECT(gpulower_request_set(pack, "emit", "bundle", NULL) == OK);
  EXPECT(gpulower_pack(compiler, pack, &packed) == OK);
  EXPECT(gpulower_result_artifact_bytes(packed, 0, &bytes, &length) == OK);
  EXPECT(gpulower_inspect("k.hipfb", bytes, length, "gfx942,gfx90a", &inspected) == OK);
  EXPECT(gpulower_result_artifact_count(inspected) == 1);
  EXPECT(contains(gpulower_result_report(inspected), "\"devices\":[{\"device\":\"gfx942\""));
  EXPECT(gpulower_result_free(inspected) == OK);
  EXPECT(gpulower_inspect("k.hipfb", bytes, length, "gfx1", &inspected) == GPULOWER_STATUS_FAILED);
  EXPECT(gpulower_result_free(inspected) == OK);
  EXPECT(gpulower_result_free(packed) == OK && gpulower_result_free(result) == OK);
  EXPECT(gpulower_request_free(pack) == OK && gpulower_request_free(link) == OK);
  EXPECT(gpulower_result_free(object) == OK && gpulower_request_free(request) == OK);

  EXPECT(gpulower_toolkit(compiler, &result) == OK);
  EXPECT(contains(gpulower_result_report(result), "\"parts\":["));
  EXPECT(gpulower_result_free(result) == OK);
  EXPECT(contains(gpulower_options_json(), "\"max-registers\""));
}

static void exports(gpulower_compiler *compiler) {
  const char *program = "module attributes {gpu.container_module} {\n"
                        "  gpu.module @m { gpu.func @k() kernel { gpu.return } }\n"
                        "  func.func @main() -> i32 {\n"
                        "    %one = arith.constant 1 : index\n"
                        "    gpu.launch_func @m::@k blocks in (%one, %one, %one) threads in (%one, %one, %one)\n"
                        "    %zero = arith.constant 0 : i32\n"
                        "    return %zero : i32\n"
                        "  }\n"
                        "}\n";
  gpulower_result *result;
  gpulower_request *request = request_of("app.mlir", program, "gfx942", "binary");
  EXPECT(gpulower_request_set(request, "finish-with", "clang-19,rocm", NULL) == OK);
  if (gpulower_export(compiler, request, NULL, &result) != OK) {
    fprintf(stderr, "%s\n", gpulower_error_text(gpulower_result_error(result, 0)));
    exit(1);
  }
  EXPECT(gpulower_result_artifact_count(result) == 1);
  EXPECT(contains(gpulower_result_report(result), "clang-19 app.o --offload-link"));
  EXPECT(gpulower_result_free(result) == OK && gpulower_request_free(request) == OK);
}

static atomic_int finished, lines;

static void cancel_it(void *data, const gpulower_progress *progress) {
  EXPECT(progress->size >= sizeof *progress);
  if (progress->event == GPULOWER_PROGRESS_FINISHED)
    finished++;
  else if (progress->event == GPULOWER_PROGRESS_BEGUN && data)
    EXPECT(gpulower_cancellation_cancel(data) == OK);
}

static gpulower_config *config_in_use;

/* Who takes the log may call the library, with what is at work as well. */
static void log_it(void *data, uint32_t level, const char *part, const char *text) {
  EXPECT(data == &lines && level >= 1 && level <= 5 && *part && *text);
  EXPECT(gpulower_config_set(config_in_use, "O", "2", NULL) == OK);
  lines++;
}

static void callbacks(void) {
  gpulower_config *config;
  gpulower_compiler *compiler;
  gpulower_cancellation *cancellation;
  gpulower_result *result;
  EXPECT(gpulower_cancellation_create(&cancellation, NULL) == OK);
  EXPECT(!gpulower_cancellation_is_cancelled(cancellation));
  EXPECT(gpulower_config_create(&config, NULL) == OK);
  config_in_use = config;
  EXPECT(gpulower_config_set_progress(config, cancel_it, cancellation, NULL) == OK);
  EXPECT(gpulower_set_log("loud", log_it, &lines, NULL) == GPULOWER_STATUS_FAILED);
  EXPECT(gpulower_set_log("trace", log_it, &lines, NULL) == OK);
  /* It says where it looks for toolkits. */
  EXPECT(gpulower_compiler_create(config, &compiler, NULL) == OK);
  gpulower_request *request = request_of("k.mlir", good, "sm_80,sm_90", "ptx");
  /* The first piece of work that begins cancels all. */
  EXPECT(gpulower_compile(compiler, request, cancellation, &result) == GPULOWER_STATUS_FAILED);
  EXPECT(strcmp(gpulower_error_code(gpulower_result_error(result, 0)), "E1101") == 0);
  EXPECT(gpulower_cancellation_is_cancelled(cancellation) && finished == 2);
  EXPECT(gpulower_result_free(result) == OK);
  EXPECT(gpulower_compile(compiler, request, NULL, &result) == OK && finished == 4);
  EXPECT(gpulower_result_free(result) == OK);
  EXPECT(lines > 0);
  EXPECT(gpulower_set_log("error", NULL, NULL, NULL) == OK);
  EXPECT(gpulower_request_free(request) == OK && gpulower_compiler_free(compiler) == OK);
  EXPECT(gpulower_config_free(config) == OK && gpulower_cancellation_free(cancellation) == OK);
}

/* Compiles with the compiler that it is called by, and frees everything that is at work. */
static void compile_inside(void *data, const gpulower_progress *progress) {
  void **all = data;
  gpulower_result *result;
  if (progress->event != GPULOWER_PROGRESS_BEGUN || finished++)
    return;
  EXPECT(gpulower_compile(all[1], all[2], NULL, &result) == OK && gpulower_result_artifact_count(result) == 2);
  EXPECT(gpulower_result_free(result) == OK);
  EXPECT(gpulower_config_free(all[0]) == OK && gpulower_compiler_free(all[1]) == OK);
  EXPECT(gpulower_request_free(all[2]) == OK);
}

static void calls_inside_of_calls(void) {
  for (int threads = 1; threads <= 2; ++threads) {
    gpulower_config *config;
    gpulower_compiler *compiler;
    gpulower_result *result;
    void *all[3];
    finished = 0;
    EXPECT(gpulower_config_create(&config, NULL) == OK);
    EXPECT(gpulower_config_set(config, "threads", threads == 1 ? "1" : "2", NULL) == OK);
    EXPECT(gpulower_config_set_progress(config, compile_inside, all, NULL) == OK);
    EXPECT(gpulower_compiler_create(config, &compiler, NULL) == OK);
    all[0] = config, all[1] = compiler, all[2] = request_of("k.mlir", good, "sm_80,sm_90", "ptx");
    EXPECT(gpulower_compile(compiler, all[2], NULL, &result) == OK && gpulower_result_artifact_count(result) == 2);
    EXPECT(gpulower_result_free(result) == OK && gpulower_compiler_free(compiler) == GPULOWER_STATUS_INVALID_HANDLE);
  }
}

struct later {
  gpulower_cancellation *cancellation;
  double seconds;
};

static void *cancel_later(void *argument) {
  struct later *later = argument;
  usleep((useconds_t)(later->seconds * 1e6));
  EXPECT(gpulower_cancellation_cancel(later->cancellation) == OK);
  return NULL;
}

static double now(void) {
  struct timespec time;
  EXPECT(clock_gettime(CLOCK_MONOTONIC, &time) == 0);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Whenever it comes, it is told as what it is, and the next call is whole. The moments are spread over more than three
   times what a call takes, so that some calls are cancelled and some finish. */
static void cancelled_at_any_moment(gpulower_compiler *compiler) {
  gpulower_result *result;
  gpulower_request *request = request_of("k.mlir", good, "sm_80,sm_90,gfx942", "asm");
  double seconds = 0;
  /* The first call is slower. */
  for (int i = 0; i < 2; ++i) {
    double begun = now();
    EXPECT(gpulower_compile(compiler, request, NULL, &result) == OK && gpulower_result_artifact_count(result) == 3);
    EXPECT(gpulower_result_free(result) == OK);
    seconds = now() - begun;
  }
  int finished_calls = 0, cancelled_calls = 0;
  for (int i = 0; i < 20 || (finished_calls == 0 && i < 100); ++i) {
    pthread_t thread;
    struct later later = {NULL, seconds * i * i / 100};
    EXPECT(gpulower_cancellation_create(&later.cancellation, NULL) == OK);
    EXPECT(pthread_create(&thread, NULL, cancel_later, &later) == 0);
    gpulower_status status = gpulower_compile(compiler, request, later.cancellation, &result);
    if (status == OK) {
      EXPECT(gpulower_result_artifact_count(result) == 3 && gpulower_result_error_count(result) == 0);
      ++finished_calls;
    } else {
      EXPECT(gpulower_result_artifact_count(result) == 0 && gpulower_result_error_count(result) > 0);
      ++cancelled_calls;
    }
    for (size_t k = 0; k < gpulower_result_error_count(result); ++k)
      EXPECT(strcmp(gpulower_error_code(gpulower_result_error(result, k)), "E1101") == 0);
    EXPECT(gpulower_result_free(result) == OK);
    pthread_join(thread, NULL);
    EXPECT(gpulower_cancellation_free(later.cancellation) == OK);
  }
  printf("%d calls finished, %d were cancelled\n", finished_calls, cancelled_calls);
  EXPECT(finished_calls > 0 && cancelled_calls > 0);
  EXPECT(gpulower_compile(compiler, request, NULL, &result) == OK && gpulower_result_artifact_count(result) == 3);
  EXPECT(gpulower_result_free(result) == OK && gpulower_request_free(request) == OK);
}

/* A child of a process that has not compiled yet; without a compiler, one that makes its own. */
static void forked(gpulower_compiler *compiler) {
  pid_t child = fork();
  if (child == 0) {
    alarm(120);
    gpulower_result *result;
    gpulower_request *request = request_of("k.mlir", good, "sm_80,sm_90", "ptx");
    alarm(60);
    EXPECT(compiler || gpulower_compiler_create(NULL, &compiler, NULL) == OK);
    _exit(gpulower_compile(compiler, request, NULL, &result) != OK);
  }
  int status;
  EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

/* One compiler and one request, from several threads, one of which frees both meanwhile. */
static void *compile_some(void *arguments) {
  void **pair = arguments;
  for (int i = 0; i < 3; ++i) {
    gpulower_result *result;
    gpulower_status status = gpulower_compile(pair[0], pair[1], NULL, &result);
    EXPECT(status == OK || status == GPULOWER_STATUS_INVALID_HANDLE);
    EXPECT(gpulower_result_free(result) == OK);
  }
  return NULL;
}

static void threads(void) {
  gpulower_compiler *compiler;
  EXPECT(gpulower_compiler_create(NULL, &compiler, NULL) == OK);
  void *pair[] = {compiler, request_of("k.mlir", good, "sm_90", "ptx")};
  pthread_t all[3];
  for (int i = 0; i < 3; ++i)
    EXPECT(pthread_create(&all[i], NULL, compile_some, pair) == 0);
  EXPECT(gpulower_compiler_free(compiler) == OK && gpulower_request_free(pair[1]) == OK);
  for (int i = 0; i < 3; ++i)
    pthread_join(all[i], NULL);
}

/* This program is its own worker: a crash ends that, and the next compilation gets another. */
static void worker(void) {
  char program[4096];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  EXPECT(length > 0);
  program[length] = 0;
  gpulower_error *error;
  gpulower_config *config;
  gpulower_compiler *compiler;
  gpulower_result *result;
  EXPECT(gpulower_config_create(&config, NULL) == OK);
  EXPECT(gpulower_config_set(config, "isolation", "worker", NULL) == OK);
  EXPECT(gpulower_config_set(config, "worker", "relative", NULL) == OK);
  refused(gpulower_compiler_create(config, &compiler, &error), GPULOWER_STATUS_FAILED, &error, "relative");
  EXPECT(gpulower_config_set(config, "worker", program, NULL) == OK);
  EXPECT(gpulower_config_set(config, "worker-argument", "--worker", NULL) == OK);
  EXPECT(gpulower_compiler_create(config, &compiler, NULL) == OK && gpulower_config_free(config) == OK);
  const char *crash = "gpu.module @m { gpu.func @k(%a: !amdgpu.tdm_gather_base<index, i32>) kernel { gpu.return } }";
  gpulower_request *crashing = request_of("crash.mlir", crash, "gfx942", "asm");
  gpulower_request *request = request_of("k.mlir", good, "gfx942", "asm");
  for (int i = 0; i < 2; ++i) {
    EXPECT(gpulower_compile(compiler, crashing, NULL, &result) == GPULOWER_STATUS_FAILED);
    EXPECT(strcmp(gpulower_error_code(gpulower_result_error(result, 0)), "E1201") == 0);
    EXPECT(gpulower_result_free(result) == OK);
    EXPECT(gpulower_compile(compiler, request, NULL, &result) == OK && gpulower_result_free(result) == OK);
  }
  EXPECT(gpulower_request_free(crashing) == OK && gpulower_request_free(request) == OK);
  EXPECT(gpulower_compiler_free(compiler) == OK);
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "--worker") == 0)
    return gpulower_worker_serve(NULL);
  EXPECT(gpulower_api_version() >> 16 == 1);
  gpulower_compiler *compiler;
  EXPECT(gpulower_compiler_create(NULL, &compiler, NULL) == OK);
  if (argc > 1 && strcmp(argv[1], "--cancel") == 0) {
    cancelled_at_any_moment(compiler);
    return gpulower_compiler_free(compiler);
  }
  forked(compiler);
  misuse(compiler);
  compiles(compiler);
  other_operations(compiler);
  exports(compiler);
  EXPECT(gpulower_compiler_free(compiler) == OK);
  forked(NULL);
  callbacks();
  calls_inside_of_calls();
  threads();
  worker();
  puts("all is as expected");
  return 0;
}
