#ifndef HEDDLE_ORT_H
#define HEDDLE_ORT_H

/* Heddle in a C or C++ program that runs models by ONNX Runtime 1.24 or later:
 *
 *   heddle_ort_register(api, env, "/usr/lib/libheddle_ort.so");
 *   heddle_ort_append(api, env, options, "cpu", NULL, NULL, 0);
 *
 * Sessions that are created with `options` let Heddle run what it compiles. In C++, `api` is &Ort::GetApi(), Ort::Env
 * and Ort::SessionOptions convert to the other arguments, and Ort::ThrowOnError() takes the results. */

#include <onnxruntime_c_api.h>
#include <stddef.h>
#include <string.h>

/* Loads the library `path`, once for an environment. Returns NULL or an error, which the caller releases. */
static inline OrtStatus* heddle_ort_register(const OrtApi* api, OrtEnv* env, const char* path) {
  return api->RegisterExecutionProviderLibrary(env, "heddle", path);
}

/* Adds Heddle's device `target` to a session's options: "cpu", "cuda:0", "cuda:1" and so on. `keys` and `values`: the
 * provider's options, such as "threads" and "2" (docs/howto/use-in-onnx-runtime.md). Returns NULL or an error, which
 * the caller releases. */
static inline OrtStatus* heddle_ort_append(const OrtApi* api, OrtEnv* env, OrtSessionOptions* options,
                                           const char* target, const char* const* keys, const char* const* values,
                                           size_t count) {
  const OrtEpDevice* const* devices = NULL;
  size_t device_count = 0, i = 0;
  OrtStatus* const status = api->GetEpDevices(env, &devices, &device_count);
  if (status != NULL) return status;
  for (i = 0; i < device_count; ++i) {
    const char* of = NULL;
    if (strcmp(api->EpDevice_EpName(devices[i]), "HeddleExecutionProvider") != 0) continue;
    of = api->GetKeyValue(api->EpDevice_EpMetadata(devices[i]), "target");
    if (of == NULL || strcmp(of, target) != 0) continue;
    return api->SessionOptionsAppendExecutionProvider_V2(options, env, &devices[i], 1, keys, values, count);
  }
  return api->CreateStatus(ORT_INVALID_ARGUMENT, "HeddleExecutionProvider has no device of this target");
}

#endif
