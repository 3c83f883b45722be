/* A program that was built against the header of the first release, the file beside this one, which never changes. It
 * uses every function, and gets from today's library what it got then. */
#include "gpulower.h"

#include <stdio.h>
#include <string.h>

#define EXPECT(condition)                                                                                              \
  if (!(condition))                                                                                                    \
  return fprintf(stderr, "not so: %s\n", #condition), 1

int main(void) {
  EXPECT(gpulower_api_version() >> 16 == 1 && GPULOWER_API_VERSION_MINOR == 0);
  const char *text = "define ptx_kernel void @k(ptr %p) { store i32 1, ptr %p ret void }";
  gpulower_error *error;
  gpulower_config *config;
  gpulower_compiler *compiler;
  gpulower_request *request;
  gpulower_cancellation *cancellation;
  gpulower_result *result;
  EXPECT(gpulower_config_create(&config, &error) == GPULOWER_STATUS_OK);
  EXPECT(gpulower_config_set(config, "threads", "1", &error) == GPULOWER_STATUS_OK);
  EXPECT(gpulower_config_set(config, "cache", "true", &error) == GPULOWER_STATUS_OK);
  EXPECT(gpulower_config_set_progress(config, NULL, NULL, &error) == GPULOWER_STATUS_OK);
  EXPECT(gpulower_compiler_create(config, &compiler, &error) == GPULOWER_STATUS_OK);
  EXPECT(gpulower_cancellation_create(&cancellation, &error) == GPULOWER_STATUS_OK);
  EXPECT(gpulower_request_create(&request, &error) == GPULOWER_STATUS_OK);
  EXPECT(gpulower_request_add_input(request, "k.ll", (const uint8_t *)text, strlen(text), &error) == 0);
  EXPECT(gpulower_request_set(request, "target", "sm_90", &error) == GPULOWER_STATUS_OK);
  EXPECT(gpulower_request_set(request, "emit", "ptx", &error) == GPULOWER_STATUS_OK);
  EXPECT(gpulower_request_set(request, "O", "2", &error) == GPULOWER_STATUS_OK);
  EXPECT(gpulower_compile(compiler, request, cancellation, &result) == GPULOWER_STATUS_OK);
  const uint8_t *bytes;
  size_t length;
  EXPECT(gpulower_result_artifact_count(result) == 1);
  EXPECT(gpulower_result_artifact_bytes(result, 0, &bytes, &length) == GPULOWER_STATUS_OK);
  EXPECT(strstr((const char *)bytes, ".visible .entry k("));
  EXPECT(strncmp(gpulower_result_report(result), "{\"schema\":1,", 12) == 0);
  EXPECT(gpulower_result_free(result) == GPULOWER_STATUS_OK);
  EXPECT(gpulower_cancellation_cancel(cancellation) == GPULOWER_STATUS_OK);
  EXPECT(gpulower_request_set(request, "target", "sm_1", &error) == GPULOWER_STATUS_FAILED);
  EXPECT(strcmp(gpulower_error_code(error), "E0201") == 0);
  EXPECT(gpulower_error_free(error) == GPULOWER_STATUS_OK);
  EXPECT(gpulower_cancellation_free(cancellation) == GPULOWER_STATUS_OK);
  EXPECT(gpulower_request_free(request) == GPULOWER_STATUS_OK);
  EXPECT(gpulower_compiler_free(compiler) == GPULOWER_STATUS_OK);
  EXPECT(gpulower_config_free(config) == GPULOWER_STATUS_OK);
  /* What is left of the interface is there. */
  void (*functions[])(void) = {
#define FUNCTION(name) (void (*)(void)) name
      FUNCTION(gpulower_version),
      FUNCTION(gpulower_status_text),
      FUNCTION(gpulower_options_json),
      FUNCTION(gpulower_set_log),
      FUNCTION(gpulower_contain_crashes),
      FUNCTION(gpulower_worker_serve),
      FUNCTION(gpulower_request_add_image),
      FUNCTION(gpulower_request_add_library),
      FUNCTION(gpulower_request_add_object),
      FUNCTION(gpulower_cancellation_is_cancelled),
      FUNCTION(gpulower_plan),
      FUNCTION(gpulower_link),
      FUNCTION(gpulower_export),
      FUNCTION(gpulower_pack),
      FUNCTION(gpulower_inspect),
      FUNCTION(gpulower_toolkit),
      FUNCTION(gpulower_result_artifact_copy),
      FUNCTION(gpulower_result_artifact_module),
      FUNCTION(gpulower_result_artifact_format),
      FUNCTION(gpulower_result_artifact_targets),
      FUNCTION(gpulower_result_artifact_input),
      FUNCTION(gpulower_result_error_count),
      FUNCTION(gpulower_result_error),
      FUNCTION(gpulower_result_warning_count),
      FUNCTION(gpulower_result_warning),
      FUNCTION(gpulower_error_stage),
      FUNCTION(gpulower_error_module),
      FUNCTION(gpulower_error_target),
      FUNCTION(gpulower_error_kernel_count),
      FUNCTION(gpulower_error_kernel),
      FUNCTION(gpulower_error_location),
      FUNCTION(gpulower_error_file),
      FUNCTION(gpulower_error_line),
      FUNCTION(gpulower_error_column),
      FUNCTION(gpulower_error_message),
      FUNCTION(gpulower_error_text),
      FUNCTION(gpulower_error_input)};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i)
    EXPECT(functions[i]);
  puts("as in the first release");
  return 0;
}
