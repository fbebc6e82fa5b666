/* include/heddle_ort.h in a C program. */
#include <heddle_ort.h>

OrtStatus* use_heddle(const OrtApi* api, OrtEnv* env, OrtSessionOptions* options, const char* library);

OrtStatus* use_heddle(const OrtApi* api, OrtEnv* env, OrtSessionOptions* options, const char* library) {
  const char* const keys[] = {"threads"};
  const char* const values[] = {"2"};
  OrtStatus* const status = heddle_ort_register(api, env, library);
  return status != NULL ? status : heddle_ort_append(api, env, options, "cpu", keys, values, 1);
}
