/* gpulower: GPU kernels in MLIR, LLVM IR and PTX to machine code for NVIDIA and AMD.
 *
 * Made by cbindgen from crates/gpulower-c/src/bridge; docs/c.md is the introduction.
 *
 * What is in this header for version 1.x works with every library of version 1.y, y >= x.
 *
 * Handles (config, request, compiler, cancellation, result, error) are made by a `create` function or handed out by a call,
 * and freed by the `free` function of their kind. NULL, a handle of another kind and one that was freed are errors: a
 * function with a status returns GPULOWER_STATUS_INVALID_HANDLE, one that reads a value returns NULL, 0 or false.
 *
 * Every function may be called from any thread, and with one handle from several at once. Text is UTF-8.
 */


#ifndef GPULOWER_H
#define GPULOWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// No input: what it is about came from none, or from several.
#define GPULOWER_NO_INPUT SIZE_MAX


// So many further pieces of work are known to be part of the call: `total`.
#define GPULOWER_PROGRESS_PLANNED 1

// A piece of work, one module for one target, begins.
#define GPULOWER_PROGRESS_BEGUN 2

// It enters a stage.
#define GPULOWER_PROGRESS_STAGE 3

// It is done.
#define GPULOWER_PROGRESS_FINISHED 4

// Major version of this interface. A program that was built for 1.x works with a library of 1.y.
#define GPULOWER_API_VERSION_MAJOR 1

// Minor version of this interface: functions, keys and members may have been added since a smaller one.
#define GPULOWER_API_VERSION_MINOR 1

// What a function returns.
enum gpulower_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // It did what it is for.
  GPULOWER_STATUS_OK = 0,
  // It was tried, and failed: the errors say why.
  GPULOWER_STATUS_FAILED = 1,
  // An argument is NULL where it must not be, or has a length that cannot be.
  GPULOWER_STATUS_INVALID_ARGUMENT = 2,
  // A handle is NULL, of another kind, freed, or was never made by this library.
  GPULOWER_STATUS_INVALID_HANDLE = 3,
  // There is no element of this number.
  GPULOWER_STATUS_OUT_OF_RANGE = 4,
  // The buffer is too small; nothing was copied.
  GPULOWER_STATUS_BUFFER_TOO_SMALL = 5,
  // A bug in gpulower: something was caught that should not have been thrown.
  GPULOWER_STATUS_INTERNAL = 6,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum gpulower_status gpulower_status;
#else
typedef int32_t gpulower_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Ends calls early, from any thread.
typedef struct gpulower_cancellation gpulower_cancellation;

// Compiles, links, packs and exports.
typedef struct gpulower_compiler gpulower_compiler;

// What a compiler is made with.
typedef struct gpulower_config gpulower_config;

// What went wrong, or deserves attention.
typedef struct gpulower_error gpulower_error;

// What is to be done in one call.
typedef struct gpulower_request gpulower_request;

// What a call came to.
typedef struct gpulower_result gpulower_result;

// A step of a call. Later versions may add members at the end.
typedef struct {
  // The size of this struct in bytes.
  size_t size;
  // One of `GPULOWER_PROGRESS_...`; others may come.
  uint32_t event;
  // Finished: whether it was taken from the cache.
  bool from_cache;
  // Finished: whether it failed.
  bool failed;
  // The module; NULL for `GPULOWER_PROGRESS_PLANNED`.
  const char *module;
  // The target; NULL for `GPULOWER_PROGRESS_PLANNED`.
  const char *target;
  // The stage; NULL but for `GPULOWER_PROGRESS_STAGE`.
  const char *stage;
  // Finished: how many are done, this one included.
  size_t done;
  // Finished: how many are known of. Planned: how many more.
  size_t total;
} gpulower_progress;

// Takes a step of a call. The struct and its text are the library's, and valid until the function returns.
//
// It is called from the compiler's threads, and from several at once. It should return soon, since the compilation waits
// for it, and it must return: no exception, no longjmp. It may call this library, to cancel for instance.
typedef void (*gpulower_progress_callback)(void *data, const gpulower_progress *progress);

// Takes a line of the log. `level` is 1 for an error, 2 for a warning, 3 for information, 4 for debugging and 5 for a
// trace; `part` is the part of the library. The text is the library's, and valid until the function returns.
//
// It is called from any thread, and from several at once. It must return: no exception, no longjmp. It may call this
// library, but what it calls logs as well.
typedef void (*gpulower_log_callback)(void *data, uint32_t level, const char *part, const char *text);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Makes a compiler. `config` is read now; NULL is one with everything at its default. Compilers keep libraries, tools and
// workers between calls: make one, and use it from all threads at once. From any thread.
//
// The caller sees to it that:
//
// `compiler` is an address for a handle; `error` is NULL or one.
gpulower_status gpulower_compiler_create(const gpulower_config *config,
                                         gpulower_compiler **compiler,
                                         gpulower_error **error);

// Frees a compiler. NULL is ignored. From any thread; calls that are under way go on, and the last one ends its workers.
gpulower_status gpulower_compiler_free(gpulower_compiler *compiler);

// Makes something to end calls with. From any thread.
//
// The caller sees to it that:
//
// `cancellation` is an address for a handle; `error` is NULL or one.
gpulower_status gpulower_cancellation_create(gpulower_cancellation **cancellation, gpulower_error **error);

// Ends the calls that were given this, and whatever will be: each module and target that was not done is an error
// (E1101). What has not begun does not begin; a running ptxas or worker is killed; in this process the work ends with the
// stage that it is in. From any thread, also from a callback.
gpulower_status gpulower_cancellation_cancel(gpulower_cancellation *cancellation);

// Whether it was cancelled. From any thread.
bool gpulower_cancellation_is_cancelled(const gpulower_cancellation *cancellation);

// Frees it. NULL is ignored. From any thread; calls that were given it go on.
gpulower_status gpulower_cancellation_free(gpulower_cancellation *cancellation);

// Compiles the inputs of a request, for its targets, to its form. `cancellation` may be NULL. There is a result whatever
// happens, unless `result` is NULL: with `keep-going` it may have artifacts and errors. From any thread, from several at once
// with the same compiler and request; it needs little stack of the calling thread.
//
// The caller sees to it that:
//
// `result` is an address for a handle.
gpulower_status gpulower_compile(const gpulower_compiler *compiler,
                                 const gpulower_request *request,
                                 const gpulower_cancellation *cancellation,
                                 gpulower_result **result);

// Says what `gpulower_compile` would do, in the report: phases and artifacts. From any thread.
//
// The caller sees to it that:
//
// `result` is an address for a handle.
gpulower_status gpulower_plan(const gpulower_compiler *compiler,
                              const gpulower_request *request,
                              gpulower_result **result);

// Links the inputs of a request into one image for its one target: compiled code, and MLIR and LLVM IR, which are
// compiled first. The artifact is a cubin or an hsaco. `cancellation` may be NULL. From any thread.
//
// The caller sees to it that:
//
// `result` is an address for a handle.
gpulower_status gpulower_link(const gpulower_compiler *compiler,
                              const gpulower_request *request,
                              const gpulower_cancellation *cancellation,
                              gpulower_result **result);

// Exports a whole program, host code and kernels, as one file for a machine that finishes it with its own clang. The
// report has the command, `commands`. `cancellation` may be NULL. From any thread.
//
// The caller sees to it that:
//
// `result` is an address for a handle.
gpulower_status gpulower_export(const gpulower_compiler *compiler,
                                const gpulower_request *request,
                                const gpulower_cancellation *cancellation,
                                gpulower_result **result);

// Runs a pass of gpulower's (`pass`, with `pass-option`) on the one input of a request, a module in MLIR, as a pass manager
// would run it; of the compiler it has toolkits, threads and cache. The artifact is the module, in generic form with
// locations. The text of errors and warnings is that of the diagnostics, without their places. Of an input without bytes,
// the options are checked, and nothing else is done. `cancellation` may be NULL. From any thread. Since 1.1.
//
// The caller sees to it that:
//
// `result` is an address for a handle.
gpulower_status gpulower_run_pass(const gpulower_compiler *compiler,
                                  const gpulower_request *request,
                                  const gpulower_cancellation *cancellation,
                                  gpulower_result **result);

// Puts the images of a request into one container: `emit` is `fatbin`, `bundle` or `offload`. From any thread.
//
// The caller sees to it that:
//
// `result` is an address for a handle.
gpulower_status gpulower_pack(const gpulower_compiler *compiler,
                              const gpulower_request *request,
                              gpulower_result **result);

// Says what is in a file, in the report: images, kernels, and what each of `devices` (such as "sm_86,gfx90a"; may be
// NULL) loads of it. The artifacts are the images, decompressed. Damaged parts are errors. From any thread.
//
// The caller sees to it that:
//
// `name` is NUL-terminated, and so is `devices`, or it is NULL; `data` is the address of `length` bytes; `result` is an
// address for a handle.
gpulower_status gpulower_inspect(const char *name,
                                 const uint8_t *data,
                                 size_t length,
                                 const char *devices,
                                 gpulower_result **result);

// Says which parts of CUDA and ROCm a compiler has, where, and where it looked for the others, in the report. From any
// thread.
//
// The caller sees to it that:
//
// `result` is an address for a handle.
gpulower_status gpulower_toolkit(const gpulower_compiler *compiler, gpulower_result **result);

// Makes a configuration with everything at its default. From any thread.
//
// The caller sees to it that:
//
// `config` is an address for a handle; `error` is NULL or one.
gpulower_status gpulower_config_create(gpulower_config **config, gpulower_error **error);

// Sets one thing. Every option of `docs/options.md` has its name there as a key, for all requests; and there are:
//
// | key | value |
// |---|---|
// | `environment` | `true`: read the environment when the compiler is made: CUDA_HOME, ROCM_PATH, XDG_CACHE_HOME and their like. Default `false` |
// | `usual-places` | `false`: do not look for toolkits in the system's usual places. Default `true` |
// | `cuda`, `rocm` | this toolkit and no other |
// | `cuda-root`, `rocm-root` | a further toolkit to look into; may be repeated |
// | `site-packages` | a folder of Python packages with NVIDIA's wheels; may be repeated |
// | `path` | directories for programs such as ptxas, as in PATH |
// | `cache-dir` | where to keep what is made once for each toolkit, and results |
// | `cache` | `true`: keep results, in memory and in `cache-dir` if there is one. Default `false` |
// | `cache-bytes`, `cache-memory-bytes` | most bytes of results on disk and in memory |
// | `cache-remote` | share results with other machines: a URL such as `redis://HOST/DB/PREFIX`; with `environment`, credentials too. Since 1.1 |
// | `cache-sign-key`, `cache-accept-key` | the file of a key to sign them with; a key that has to have signed them, again for more. Since 1.1 |
// | `cache-shared-with` | `group:NAME` or `user:NAME`: whose entries the directory may have. Since 1.1 |
// | `threads` | use at most so many. Default: one for each processor |
// | `worker` | the absolute path of the program `gpulower`, or of one that calls `gpulower_worker_serve`, for `isolation` = `worker` |
// | `worker-argument` | what the program is started with, in the place of `worker`; may be repeated |
// | `worker-environment` | NAME=VALUE, a variable for the program, whose environment is empty otherwise; may be repeated |
//
// From any thread.
//
// The caller sees to it that:
//
// `key` and `value` are NUL-terminated; `error` is NULL or an address for a handle.
gpulower_status gpulower_config_set(gpulower_config *config,
                                    const char *key,
                                    const char *value,
                                    gpulower_error **error);

// Has the compilers of this configuration tell their progress to `callback`, or nobody if it is NULL. From any thread.
//
// The caller sees to it that:
//
// `callback` can be called with `data` from any thread as long as a compiler of this configuration works; `error` is NULL
// or an address for a handle.
gpulower_status gpulower_config_set_progress(gpulower_config *config,
                                             gpulower_progress_callback callback,
                                             void *data,
                                             gpulower_error **error);

// Frees a configuration. Compilers that were made of it stay as they are. NULL is ignored. From any thread.
gpulower_status gpulower_config_free(gpulower_config *config);

// The code, such as `E0401`, which stays the same in all releases: `docs/errors.md`. NULL for a warning. This and what
// else is text is lent until the error is freed, or the result that it goes with. From any thread.
const char *gpulower_error_code(const gpulower_error *error);

// The stage, such as `lower` or `ptx-to-cubin`. From any thread.
const char *gpulower_error_stage(const gpulower_error *error);

// The symbol of the `gpu.module`, or the name of the input; NULL where it is about none. From any thread.
const char *gpulower_error_module(const gpulower_error *error);

// The target; NULL where it is about none. From any thread.
const char *gpulower_error_target(const gpulower_error *error);

// How many kernels are concerned, where that is known. From any thread.
size_t gpulower_error_kernel_count(const gpulower_error *error);

// A kernel that is concerned; NULL where there is none of this number. From any thread.
const char *gpulower_error_kernel(const gpulower_error *error, size_t index);

// The place in the source as MLIR writes it, such as `callsite("a.py":1:2 at "b.py":3:4)`; NULL where it is not known.
// From any thread.
const char *gpulower_error_location(const gpulower_error *error);

// The file of the place, if it has a position in one; else NULL. From any thread.
const char *gpulower_error_file(const gpulower_error *error);

// The line of the place, from 1 on; 0 where it is not known. From any thread.
uint32_t gpulower_error_line(const gpulower_error *error);

// The column of the place, from 1 on; 0 where it is not known. From any thread.
uint32_t gpulower_error_column(const gpulower_error *error);

// What is wrong, without stage, module, target and place. From any thread.
const char *gpulower_error_message(const gpulower_error *error);

// All of it in one text: place, stage, module, target, message, notes. From any thread.
const char *gpulower_error_text(const gpulower_error *error);

// The input that it is about, by its number from 0 on; `GPULOWER_NO_INPUT` where it is about none. From any thread.
size_t gpulower_error_input(const gpulower_error *error);

// Frees an error that a function handed out through its argument `error`. Those of a result go with it. NULL is ignored.
// From any thread.
gpulower_status gpulower_error_free(gpulower_error *error);

// The version of the interface that this library has: the major version in the upper 16 bits, the minor version in the
// lower. Ask first, and compare with `GPULOWER_API_VERSION_MAJOR`. From any thread.
uint32_t gpulower_api_version(void);

// The version of the library, such as "0.1.0". Static. From any thread.
const char *gpulower_version(void);

// A status in words. Static. From any thread.
const char *gpulower_status_text(int32_t status);

// The options that `gpulower_config_set` and `gpulower_request_set` take by name, as a JSON array of objects with
// `names`, `summary`, `values`, `default` and `adds_up`. Static. From any thread.
const char *gpulower_options_json(void);

// The passes that `gpulower_run_pass` runs, as a JSON array of objects with `argument`, `description` and `options`, which
// have `name`, `help` and `default`. Static. From any thread. Since 1.1.
const char *gpulower_passes_json(void);

// Sends the library's log to `callback`, in the place of where it went before; nowhere if it is NULL. `level` is "error",
// "warn", "info", "debug" or "trace": that, and what is graver. For the whole process. From any thread; calls that are
// under way may use the old callback once more.
//
// The caller sees to it that:
//
// `callback` can be called with `data` from any thread until another one is set and what is under way has ended.
gpulower_status gpulower_set_log(const char *level,
                                 gpulower_log_callback callback,
                                 void *data,
                                 gpulower_error **error);

// Whether crashes inside LLVM, MLIR and NVIDIA's libraries come back as errors, as they do unless this is called with
// false. For the whole process, because signal handlers are: those of SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP and SIGABRT
// are installed with the first compilation, pass on what is not from such a crash to the handlers that were there before,
// and stay; with false before that they are not installed. From any thread.
void gpulower_contain_crashes(bool enabled);

// Makes this process a worker: it compiles for the process that started it, which has `worker` set to this program,
// and returns when that one ends. To be called first of all, before anything reads the standard input or starts a thread.
//
// The caller sees to it that:
//
// `error` is NULL or an address for a handle.
gpulower_status gpulower_worker_serve(gpulower_error **error);

// Makes an empty request. It may be used for any number of calls, of any compiler. From any thread.
//
// The caller sees to it that:
//
// `request` is an address for a handle; `error` is NULL or one.
gpulower_status gpulower_request_create(gpulower_request **request, gpulower_error **error);

// Sets one thing. Every option of `docs/options.md` has its name there as a key, and wins over the compiler's; and there are:
//
// | key | value |
// |---|---|
// | `target` | what to compile for: `sm_90a`, `gfx90a:xnack-`, or several with commas between; may be repeated. Default: the target attributes of the modules |
// | `emit` | what to make: `ptx`, `cubin`, `hsaco`, `asm`, `llvm`, `bitcode`, `object`, `mlir`, `binary` (the default: cubin or hsaco), or all targets of a module in one: `fatbin`, `bundle`, `offload` |
// | `keep-going` | `true`: an input that fails costs no other. Default `false`: all or nothing |
// | `link` | a file of bitcode or LLVM IR to link what is needed of; may be repeated |
// | `device-link` | `true`: join the modules into one image for each target |
// | `link-object` | a file of compiled code for that image: PTX, a relocatable cubin, an object, an archive; may be repeated |
// | `export-form` | export: `obj` (the default), `ll`, `bc`, `self` |
// | `finish-with` | export: what finishes the program, such as `clang-19,cuda-12.4` |
// | `host-triple` | export: default `x86_64-unknown-linux-gnu` |
// | `unit` | export: what the program is called. Default: the input's file name |
// | `keep-names` | export: `true` leaves names of kernels as they are |
// | `ptxas-of` | export: a further CUDA toolkit whose ptxas may be used; may be repeated |
// | `pass` | run a pass: its name, such as `gpulower-serialize`. Since 1.1 |
// | `pass-option` | run a pass: NAME=VALUE, an option of the pass; may be repeated. Since 1.1 |
//
// From any thread; a call that is under way with this request goes on with what was set before.
//
// The caller sees to it that:
//
// `key` and `value` are NUL-terminated; `error` is NULL or an address for a handle.
gpulower_status gpulower_request_set(gpulower_request *request,
                                     const char *key,
                                     const char *value,
                                     gpulower_error **error);

// Adds an input: MLIR as text or bytecode, LLVM IR as text or bitcode, PTX, or compiled code for `gpulower_link`. The bytes
// are copied. `name` is for messages, and its extension tells text formats apart: `kernels.mlir`, `kernels.ll`. From any
// thread.
//
// The caller sees to it that:
//
// `name` is NUL-terminated; `data` is the address of `length` bytes; `error` is NULL or an address for a handle.
gpulower_status gpulower_request_add_input(gpulower_request *request,
                                           const char *name,
                                           const uint8_t *data,
                                           size_t length,
                                           gpulower_error **error);

// Adds an image, or a container of images, for `gpulower_pack`. `target` says what an image is for that does not say so
// itself, or says less (a cubin does not say that it is of a family); it may be NULL. The bytes are copied. From any thread.
//
// The caller sees to it that:
//
// `name` is NUL-terminated, and so is `target`, or it is NULL; `data` is the address of `length` bytes; `error` is NULL or
// an address for a handle.
gpulower_status gpulower_request_add_image(gpulower_request *request,
                                           const char *name,
                                           const char *target,
                                           const uint8_t *data,
                                           size_t length,
                                           gpulower_error **error);

// Adds a library of bitcode or LLVM IR, of which what is needed is linked into the kernels. The bytes are copied. From any
// thread.
//
// The caller sees to it that:
//
// As for `gpulower_request_add_input`.
gpulower_status gpulower_request_add_library(gpulower_request *request,
                                             const char *name,
                                             const uint8_t *data,
                                             size_t length,
                                             gpulower_error **error);

// Adds compiled code that is linked with what the inputs become: PTX, a relocatable cubin, LTO-IR, an AMDGPU object, an
// archive of these. The bytes are copied. From any thread.
//
// The caller sees to it that:
//
// As for `gpulower_request_add_input`.
gpulower_status gpulower_request_add_object(gpulower_request *request,
                                            const char *name,
                                            const uint8_t *data,
                                            size_t length,
                                            gpulower_error **error);

// Frees a request. NULL is ignored. From any thread; a call that is under way with it goes on.
gpulower_status gpulower_request_free(gpulower_request *request);

// How many artifacts there are; 0 for what is no result. From any thread.
size_t gpulower_result_artifact_count(const gpulower_result *result);

// Lends the bytes of an artifact, until the result is freed. They end with a NUL that `length` does not count. From any
// thread.
//
// The caller sees to it that:
//
// `data` and `length` are addresses for such values.
gpulower_status gpulower_result_artifact_bytes(const gpulower_result *result,
                                               size_t index,
                                               const uint8_t **data,
                                               size_t *length);

// Copies the bytes of an artifact into a buffer of `capacity` bytes. `length` gets their number, also when the buffer is too
// small (`GPULOWER_STATUS_BUFFER_TOO_SMALL`), or NULL with a capacity of 0. From any thread.
//
// The caller sees to it that:
//
// `buffer` is the address of `capacity` bytes; `length` is the address of a value.
gpulower_status gpulower_result_artifact_copy(const gpulower_result *result,
                                              size_t index,
                                              uint8_t *buffer,
                                              size_t capacity,
                                              size_t *length);

// The symbol of the `gpu.module` that an artifact was made of, or the name of the input. Lent until the result is freed;
// NULL where there is no such artifact. From any thread.
const char *gpulower_result_artifact_module(const gpulower_result *result,
                                            size_t index);

// What the bytes of an artifact are: `ptx`, `cubin`, `hsaco`, `fatbin` and so on. Lent until the result is freed; NULL
// where there is no such artifact. From any thread.
const char *gpulower_result_artifact_format(const gpulower_result *result, size_t index);

// The targets of an artifact: `sm_80, sm_90`. Lent until the result is freed; NULL where there is no such artifact. From
// any thread.
const char *gpulower_result_artifact_targets(const gpulower_result *result,
                                             size_t index);

// The input that an artifact was made of, by its number from 0 on; `GPULOWER_NO_INPUT` where it was made of several. From
// any thread.
size_t gpulower_result_artifact_input(const gpulower_result *result,
                                      size_t index);

// How many errors there are; 0 for what is no result. From any thread.
size_t gpulower_result_error_count(const gpulower_result *result);

// An error of a result. It goes with the result, and is not freed by itself; NULL where there is none of this number. From
// any thread.
const gpulower_error *gpulower_result_error(const gpulower_result *result,
                                            size_t index);

// How many warnings there are; 0 for what is no result. From any thread.
size_t gpulower_result_warning_count(const gpulower_result *result);

// A warning of a result, which is read like an error, but has no code. It goes with the result; NULL where there is none of
// this number. From any thread.
const gpulower_error *gpulower_result_warning(const gpulower_result *result,
                                              size_t index);

// The report, a JSON object with `schema`, `operation`, `errors`, `warnings` and what the operation has to say: resources of
// kernels, times of stages, choices. Fields may be added to schema 1; none changes its meaning. Lent until the result is
// freed; NULL for what is no result. From any thread.
const char *gpulower_result_report(const gpulower_result *result);

// Frees a result, its errors and warnings, and what was lent of them. NULL is ignored. From any thread.
gpulower_status gpulower_result_free(gpulower_result *result);

// The version of the interface that this library has: the major version in the upper 16 bits, the minor version in the
// lower. Ask first, and compare with `GPULOWER_API_VERSION_MAJOR`. From any thread.
uint32_t gpulower_api_version(void);

// The version of the library, such as "0.1.0". Static. From any thread.
const char *gpulower_version(void);

// A status in words. Static. From any thread.
const char *gpulower_status_text(int32_t status);

// The options that `gpulower_config_set` and `gpulower_request_set` take by name, as a JSON array of objects with
// `names`, `summary`, `values`, `default` and `adds_up`. Static. From any thread.
const char *gpulower_options_json(void);

// The passes that `gpulower_run_pass` runs, as a JSON array of objects with `argument`, `description` and `options`, which
// have `name`, `help` and `default`. Static. From any thread. Since 1.1.
const char *gpulower_passes_json(void);

// Sends the library's log to `callback`, in the place of where it went before; nowhere if it is NULL. `level` is "error",
// "warn", "info", "debug" or "trace": that, and what is graver. For the whole process. From any thread; calls that are
// under way may use the old callback once more.
//
// The caller sees to it that:
//
// `callback` can be called with `data` from any thread until another one is set and what is under way has ended.
gpulower_status gpulower_set_log(const char *level,
                                 gpulower_log_callback callback,
                                 void *data,
                                 gpulower_error **error);

// Whether crashes inside LLVM, MLIR and NVIDIA's libraries come back as errors, as they do unless this is called with
// false. For the whole process, because signal handlers are: those of SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP and SIGABRT
// are installed with the first compilation, pass on what is not from such a crash to the handlers that were there before,
// and stay; with false before that they are not installed. From any thread.
void gpulower_contain_crashes(bool enabled);

// Makes this process a worker: it compiles for the process that started it, which has `worker` set to this program,
// and returns when that one ends. To be called first of all, before anything reads the standard input or starts a thread.
//
// The caller sees to it that:
//
// `error` is NULL or an address for a handle.
gpulower_status gpulower_worker_serve(gpulower_error **error);

// Makes a configuration with everything at its default. From any thread.
//
// The caller sees to it that:
//
// `config` is an address for a handle; `error` is NULL or one.
gpulower_status gpulower_config_create(gpulower_config **config, gpulower_error **error);

// Sets one thing. Every option of `docs/options.md` has its name there as a key, for all requests; and there are:
//
// | key | value |
// |---|---|
// | `environment` | `true`: read the environment when the compiler is made: CUDA_HOME, ROCM_PATH, XDG_CACHE_HOME and their like. Default `false` |
// | `usual-places` | `false`: do not look for toolkits in the system's usual places. Default `true` |
// | `cuda`, `rocm` | this toolkit and no other |
// | `cuda-root`, `rocm-root` | a further toolkit to look into; may be repeated |
// | `site-packages` | a folder of Python packages with NVIDIA's wheels; may be repeated |
// | `path` | directories for programs such as ptxas, as in PATH |
// | `cache-dir` | where to keep what is made once for each toolkit, and results |
// | `cache` | `true`: keep results, in memory and in `cache-dir` if there is one. Default `false` |
// | `cache-bytes`, `cache-memory-bytes` | most bytes of results on disk and in memory |
// | `cache-remote` | share results with other machines: a URL such as `redis://HOST/DB/PREFIX`; with `environment`, credentials too. Since 1.1 |
// | `cache-sign-key`, `cache-accept-key` | the file of a key to sign them with; a key that has to have signed them, again for more. Since 1.1 |
// | `cache-shared-with` | `group:NAME` or `user:NAME`: whose entries the directory may have. Since 1.1 |
// | `threads` | use at most so many. Default: one for each processor |
// | `worker` | the absolute path of the program `gpulower`, or of one that calls `gpulower_worker_serve`, for `isolation` = `worker` |
// | `worker-argument` | what the program is started with, in the place of `worker`; may be repeated |
// | `worker-environment` | NAME=VALUE, a variable for the program, whose environment is empty otherwise; may be repeated |
//
// From any thread.
//
// The caller sees to it that:
//
// `key` and `value` are NUL-terminated; `error` is NULL or an address for a handle.
gpulower_status gpulower_config_set(gpulower_config *config,
                                    const char *key,
                                    const char *value,
                                    gpulower_error **error);

// Has the compilers of this configuration tell their progress to `callback`, or nobody if it is NULL. From any thread.
//
// The caller sees to it that:
//
// `callback` can be called with `data` from any thread as long as a compiler of this configuration works; `error` is NULL
// or an address for a handle.
gpulower_status gpulower_config_set_progress(gpulower_config *config,
                                             gpulower_progress_callback callback,
                                             void *data,
                                             gpulower_error **error);

// Frees a configuration. Compilers that were made of it stay as they are. NULL is ignored. From any thread.
gpulower_status gpulower_config_free(gpulower_config *config);

// Makes an empty request. It may be used for any number of calls, of any compiler. From any thread.
//
// The caller sees to it that:
//
// `request` is an address for a handle; `error` is NULL or one.
gpulower_status gpulower_request_create(gpulower_request **request, gpulower_error **error);

// Sets one thing. Every option of `docs/options.md` has its name there as a key, and wins over the compiler's; and there are:
//
// | key | value |
// |---|---|
// | `target` | what to compile for: `sm_90a`, `gfx90a:xnack-`, or several with commas between; may be repeated. Default: the target attributes of the modules |
// | `emit` | what to make: `ptx`, `cubin`, `hsaco`, `asm`, `llvm`, `bitcode`, `object`, `mlir`, `binary` (the default: cubin or hsaco), or all targets of a module in one: `fatbin`, `bundle`, `offload` |
// | `keep-going` | `true`: an input that fails costs no other. Default `false`: all or nothing |
// | `link` | a file of bitcode or LLVM IR to link what is needed of; may be repeated |
// | `device-link` | `true`: join the modules into one image for each target |
// | `link-object` | a file of compiled code for that image: PTX, a relocatable cubin, an object, an archive; may be repeated |
// | `export-form` | export: `obj` (the default), `ll`, `bc`, `self` |
// | `finish-with` | export: what finishes the program, such as `clang-19,cuda-12.4` |
// | `host-triple` | export: default `x86_64-unknown-linux-gnu` |
// | `unit` | export: what the program is called. Default: the input's file name |
// | `keep-names` | export: `true` leaves names of kernels as they are |
// | `ptxas-of` | export: a further CUDA toolkit whose ptxas may be used; may be repeated |
// | `pass` | run a pass: its name, such as `gpulower-serialize`. Since 1.1 |
// | `pass-option` | run a pass: NAME=VALUE, an option of the pass; may be repeated. Since 1.1 |
//
// From any thread; a call that is under way with this request goes on with what was set before.
//
// The caller sees to it that:
//
// `key` and `value` are NUL-terminated; `error` is NULL or an address for a handle.
gpulower_status gpulower_request_set(gpulower_request *request,
                                     const char *key,
                                     const char *value,
                                     gpulower_error **error);

// Adds an input: MLIR as text or bytecode, LLVM IR as text or bitcode, PTX, or compiled code for `gpulower_link`. The bytes
// are copied. `name` is for messages, and its extension tells text formats apart: `kernels.mlir`, `kernels.ll`. From any
// thread.
//
// The caller sees to it that:
//
// `name` is NUL-terminated; `data` is the address of `length` bytes; `error` is NULL or an address for a handle.
gpulower_status gpulower_request_add_input(gpulower_request *request,
                                           const char *name,
                                           const uint8_t *data,
                                           size_t length,
                                           gpulower_error **error);

// Adds an image, or a container of images, for `gpulower_pack`. `target` says what an image is for that does not say so
// itself, or says less (a cubin does not say that it is of a family); it may be NULL. The bytes are copied. From any thread.
//
// The caller sees to it that:
//
// `name` is NUL-terminated, and so is `target`, or it is NULL; `data` is the address of `length` bytes; `error` is NULL or
// an address for a handle.
gpulower_status gpulower_request_add_image(gpulower_request *request,
                                           const char *name,
                                           const char *target,
                                           const uint8_t *data,
                                           size_t length,
                                           gpulower_error **error);

// Adds a library of bitcode or LLVM IR, of which what is needed is linked into the kernels. The bytes are copied. From any
// thread.
//
// The caller sees to it that:
//
// As for `gpulower_request_add_input`.
gpulower_status gpulower_request_add_library(gpulower_request *request,
                                             const char *name,
                                             const uint8_t *data,
                                             size_t length,
                                             gpulower_error **error);

// Adds compiled code that is linked with what the inputs become: PTX, a relocatable cubin, LTO-IR, an AMDGPU object, an
// archive of these. The bytes are copied. From any thread.
//
// The caller sees to it that:
//
// As for `gpulower_request_add_input`.
gpulower_status gpulower_request_add_object(gpulower_request *request,
                                            const char *name,
                                            const uint8_t *data,
                                            size_t length,
                                            gpulower_error **error);

// Frees a request. NULL is ignored. From any thread; a call that is under way with it goes on.
gpulower_status gpulower_request_free(gpulower_request *request);

// Makes a compiler. `config` is read now; NULL is one with everything at its default. Compilers keep libraries, tools and
// workers between calls: make one, and use it from all threads at once. From any thread.
//
// The caller sees to it that:
//
// `compiler` is an address for a handle; `error` is NULL or one.
gpulower_status gpulower_compiler_create(const gpulower_config *config,
                                         gpulower_compiler **compiler,
                                         gpulower_error **error);

// Frees a compiler. NULL is ignored. From any thread; calls that are under way go on, and the last one ends its workers.
gpulower_status gpulower_compiler_free(gpulower_compiler *compiler);

// Makes something to end calls with. From any thread.
//
// The caller sees to it that:
//
// `cancellation` is an address for a handle; `error` is NULL or one.
gpulower_status gpulower_cancellation_create(gpulower_cancellation **cancellation, gpulower_error **error);

// Ends the calls that were given this, and whatever will be: each module and target that was not done is an error
// (E1101). What has not begun does not begin; a running ptxas or worker is killed; in this process the work ends with the
// stage that it is in. From any thread, also from a callback.
gpulower_status gpulower_cancellation_cancel(gpulower_cancellation *cancellation);

// Whether it was cancelled. From any thread.
bool gpulower_cancellation_is_cancelled(const gpulower_cancellation *cancellation);

// Frees it. NULL is ignored. From any thread; calls that were given it go on.
gpulower_status gpulower_cancellation_free(gpulower_cancellation *cancellation);

// Compiles the inputs of a request, for its targets, to its form. `cancellation` may be NULL. There is a result whatever
// happens, unless `result` is NULL: with `keep-going` it may have artifacts and errors. From any thread, from several at once
// with the same compiler and request; it needs little stack of the calling thread.
//
// The caller sees to it that:
//
// `result` is an address for a handle.
gpulower_status gpulower_compile(const gpulower_compiler *compiler,
                                 const gpulower_request *request,
                                 const gpulower_cancellation *cancellation,
                                 gpulower_result **result);

// Says what `gpulower_compile` would do, in the report: phases and artifacts. From any thread.
//
// The caller sees to it that:
//
// `result` is an address for a handle.
gpulower_status gpulower_plan(const gpulower_compiler *compiler,
                              const gpulower_request *request,
                              gpulower_result **result);

// Links the inputs of a request into one image for its one target: compiled code, and MLIR and LLVM IR, which are
// compiled first. The artifact is a cubin or an hsaco. `cancellation` may be NULL. From any thread.
//
// The caller sees to it that:
//
// `result` is an address for a handle.
gpulower_status gpulower_link(const gpulower_compiler *compiler,
                              const gpulower_request *request,
                              const gpulower_cancellation *cancellation,
                              gpulower_result **result);

// Exports a whole program, host code and kernels, as one file for a machine that finishes it with its own clang. The
// report has the command, `commands`. `cancellation` may be NULL. From any thread.
//
// The caller sees to it that:
//
// `result` is an address for a handle.
gpulower_status gpulower_export(const gpulower_compiler *compiler,
                                const gpulower_request *request,
                                const gpulower_cancellation *cancellation,
                                gpulower_result **result);

// Runs a pass of gpulower's (`pass`, with `pass-option`) on the one input of a request, a module in MLIR, as a pass manager
// would run it; of the compiler it has toolkits, threads and cache. The artifact is the module, in generic form with
// locations. The text of errors and warnings is that of the diagnostics, without their places. Of an input without bytes,
// the options are checked, and nothing else is done. `cancellation` may be NULL. From any thread. Since 1.1.
//
// The caller sees to it that:
//
// `result` is an address for a handle.
gpulower_status gpulower_run_pass(const gpulower_compiler *compiler,
                                  const gpulower_request *request,
                                  const gpulower_cancellation *cancellation,
                                  gpulower_result **result);

// Puts the images of a request into one container: `emit` is `fatbin`, `bundle` or `offload`. From any thread.
//
// The caller sees to it that:
//
// `result` is an address for a handle.
gpulower_status gpulower_pack(const gpulower_compiler *compiler,
                              const gpulower_request *request,
                              gpulower_result **result);

// Says what is in a file, in the report: images, kernels, and what each of `devices` (such as "sm_86,gfx90a"; may be
// NULL) loads of it. The artifacts are the images, decompressed. Damaged parts are errors. From any thread.
//
// The caller sees to it that:
//
// `name` is NUL-terminated, and so is `devices`, or it is NULL; `data` is the address of `length` bytes; `result` is an
// address for a handle.
gpulower_status gpulower_inspect(const char *name,
                                 const uint8_t *data,
                                 size_t length,
                                 const char *devices,
                                 gpulower_result **result);

// Says which parts of CUDA and ROCm a compiler has, where, and where it looked for the others, in the report. From any
// thread.
//
// The caller sees to it that:
//
// `result` is an address for a handle.
gpulower_status gpulower_toolkit(const gpulower_compiler *compiler, gpulower_result **result);

// How many artifacts there are; 0 for what is no result. From any thread.
size_t gpulower_result_artifact_count(const gpulower_result *result);

// Lends the bytes of an artifact, until the result is freed. They end with a NUL that `length` does not count. From any
// thread.
//
// The caller sees to it that:
//
// `data` and `length` are addresses for such values.
gpulower_status gpulower_result_artifact_bytes(const gpulower_result *result,
                                               size_t index,
                                               const uint8_t **data,
                                               size_t *length);

// Copies the bytes of an artifact into a buffer of `capacity` bytes. `length` gets their number, also when the buffer is too
// small (`GPULOWER_STATUS_BUFFER_TOO_SMALL`), or NULL with a capacity of 0. From any thread.
//
// The caller sees to it that:
//
// `buffer` is the address of `capacity` bytes; `length` is the address of a value.
gpulower_status gpulower_result_artifact_copy(const gpulower_result *result,
                                              size_t index,
                                              uint8_t *buffer,
                                              size_t capacity,
                                              size_t *length);

// The symbol of the `gpu.module` that an artifact was made of, or the name of the input. Lent until the result is freed;
// NULL where there is no such artifact. From any thread.
const char *gpulower_result_artifact_module(const gpulower_result *result,
                                            size_t index);

// What the bytes of an artifact are: `ptx`, `cubin`, `hsaco`, `fatbin` and so on. Lent until the result is freed; NULL
// where there is no such artifact. From any thread.
const char *gpulower_result_artifact_format(const gpulower_result *result, size_t index);

// The targets of an artifact: `sm_80, sm_90`. Lent until the result is freed; NULL where there is no such artifact. From
// any thread.
const char *gpulower_result_artifact_targets(const gpulower_result *result,
                                             size_t index);

// The input that an artifact was made of, by its number from 0 on; `GPULOWER_NO_INPUT` where it was made of several. From
// any thread.
size_t gpulower_result_artifact_input(const gpulower_result *result,
                                      size_t index);

// How many errors there are; 0 for what is no result. From any thread.
size_t gpulower_result_error_count(const gpulower_result *result);

// An error of a result. It goes with the result, and is not freed by itself; NULL where there is none of this number. From
// any thread.
const gpulower_error *gpulower_result_error(const gpulower_result *result,
                                            size_t index);

// How many warnings there are; 0 for what is no result. From any thread.
size_t gpulower_result_warning_count(const gpulower_result *result);

// A warning of a result, which is read like an error, but has no code. It goes with the result; NULL where there is none of
// this number. From any thread.
const gpulower_error *gpulower_result_warning(const gpulower_result *result,
                                              size_t index);

// The report, a JSON object with `schema`, `operation`, `errors`, `warnings` and what the operation has to say: resources of
// kernels, times of stages, choices. Fields may be added to schema 1; none changes its meaning. Lent until the result is
// freed; NULL for what is no result. From any thread.
const char *gpulower_result_report(const gpulower_result *result);

// Frees a result, its errors and warnings, and what was lent of them. NULL is ignored. From any thread.
gpulower_status gpulower_result_free(gpulower_result *result);

// The code, such as `E0401`, which stays the same in all releases: `docs/errors.md`. NULL for a warning. This and what
// else is text is lent until the error is freed, or the result that it goes with. From any thread.
const char *gpulower_error_code(const gpulower_error *error);

// The stage, such as `lower` or `ptx-to-cubin`. From any thread.
const char *gpulower_error_stage(const gpulower_error *error);

// The symbol of the `gpu.module`, or the name of the input; NULL where it is about none. From any thread.
const char *gpulower_error_module(const gpulower_error *error);

// The target; NULL where it is about none. From any thread.
const char *gpulower_error_target(const gpulower_error *error);

// How many kernels are concerned, where that is known. From any thread.
size_t gpulower_error_kernel_count(const gpulower_error *error);

// A kernel that is concerned; NULL where there is none of this number. From any thread.
const char *gpulower_error_kernel(const gpulower_error *error, size_t index);

// The place in the source as MLIR writes it, such as `callsite("a.py":1:2 at "b.py":3:4)`; NULL where it is not known.
// From any thread.
const char *gpulower_error_location(const gpulower_error *error);

// The file of the place, if it has a position in one; else NULL. From any thread.
const char *gpulower_error_file(const gpulower_error *error);

// The line of the place, from 1 on; 0 where it is not known. From any thread.
uint32_t gpulower_error_line(const gpulower_error *error);

// The column of the place, from 1 on; 0 where it is not known. From any thread.
uint32_t gpulower_error_column(const gpulower_error *error);

// What is wrong, without stage, module, target and place. From any thread.
const char *gpulower_error_message(const gpulower_error *error);

// All of it in one text: place, stage, module, target, message, notes. From any thread.
const char *gpulower_error_text(const gpulower_error *error);

// The input that it is about, by its number from 0 on; `GPULOWER_NO_INPUT` where it is about none. From any thread.
size_t gpulower_error_input(const gpulower_error *error);

// Frees an error that a function handed out through its argument `error`. Those of a result go with it. NULL is ignored.
// From any thread.
gpulower_status gpulower_error_free(gpulower_error *error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* GPULOWER_H */
