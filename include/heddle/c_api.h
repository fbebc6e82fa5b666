/* The C interface of Heddle. Handles are opaque and freed by their own functions; freeing NULL does nothing. No C++
 * exception leaves a function: it returns 0 and, through the last parameter, an error that the caller frees (pass NULL
 * to ignore it). Strings are UTF-8; those that a function returns belong to the handle that was passed to it. */
#ifndef HEDDLE_C_API_H
#define HEDDLE_C_API_H

#include <stddef.h>
#include <stdint.h>

#include "heddle/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_options heddle_options;
typedef struct heddle_model heddle_model;
typedef struct heddle_tensor heddle_tensor;
typedef struct heddle_error heddle_error;

/* Element types; the values are part of the ABI. Types narrower than a byte take one byte per element. */
typedef enum heddle_dtype {
  HEDDLE_F64 = 0,
  HEDDLE_F32 = 1,
  HEDDLE_F16 = 2,
  HEDDLE_BF16 = 3,
  HEDDLE_F8E4M3 = 4,
  HEDDLE_F8E4M3FNUZ = 5,
  HEDDLE_F8E5M2 = 6,
  HEDDLE_F8E5M2FNUZ = 7,
  HEDDLE_F8E8M0 = 8,
  HEDDLE_F4E2M1 = 9,
  HEDDLE_I64 = 10,
  HEDDLE_I32 = 11,
  HEDDLE_I16 = 12,
  HEDDLE_I8 = 13,
  HEDDLE_I4 = 14,
  HEDDLE_I2 = 15,
  HEDDLE_U64 = 16,
  HEDDLE_U32 = 17,
  HEDDLE_U16 = 18,
  HEDDLE_U8 = 19,
  HEDDLE_U4 = 20,
  HEDDLE_U2 = 21,
  HEDDLE_BOOL = 22,
  HEDDLE_STRING = 23
} heddle_dtype;

/* "0.1.0" */
HEDDLE_API const char* heddle_version(void);

/* The HDL number of docs/errors, and the whole text: where, why, what to do. */
HEDDLE_API int heddle_error_code(const heddle_error* error);
HEDDLE_API const char* heddle_error_message(const heddle_error* error);
HEDDLE_API void heddle_error_free(heddle_error* error);

/* Options start with their defaults. Keys: "target" (cpu, cuda, cuda:N), "precision" (f32, tf32, f16, bf16), "threads",
 * "fusion" (none, basic, stitch), "cache" (0 or 1), "background" (0 or 1), "alias" (an output in the memory of an
 * input: OUTPUT=INPUT, with one * in both for many, or auto; each call adds to it). Unknown values are reported when a
 * model is loaded. */
HEDDLE_API heddle_options* heddle_options_new(void);
HEDDLE_API int heddle_options_set(heddle_options* options, const char* key, const char* value, heddle_error** error);
HEDDLE_API int heddle_options_set_shape(heddle_options* options, const char* input, const int64_t* shape, size_t rank,
                                        heddle_error** error);
/* The range, both ends included, of a symbolic extent, which is named as in the model ("seq") or by input and dimension
 * ("x.1"). Kernels for the range are compiled in the background from heddle_model_load() on. */
HEDDLE_API int heddle_options_set_range(heddle_options* options, const char* extent, int64_t min, int64_t max,
                                        heddle_error** error);
/* Called with the progress of loading a model: at each stage and whenever kernels are done, with the share of all work
 * done. One thread calls it at a time, also when a run makes its model compile for other shapes. NULL: no calls. */
typedef void (*heddle_progress)(const char* stage, double fraction, void* context);
HEDDLE_API void heddle_options_set_progress(heddle_options* options, heddle_progress progress, void* context);
HEDDLE_API void heddle_options_free(heddle_options* options);

/* Reads an ONNX file or a plan file and compiles it, or takes it from the cache. `options` may be NULL. */
HEDDLE_API heddle_model* heddle_model_load(const char* path, const heddle_options* options, heddle_error** error);
/* Writes a plan file, which loads without compiler and source. */
HEDDLE_API int heddle_model_save(const heddle_model* model, const char* path, heddle_error** error);
HEDDLE_API void heddle_model_free(heddle_model* model);

typedef struct heddle_port {
  const char* name;
  heddle_dtype dtype;
  size_t rank;
  const int64_t* shape;
} heddle_port;

HEDDLE_API size_t heddle_model_input_count(const heddle_model* model);
HEDDLE_API size_t heddle_model_output_count(const heddle_model* model);
/* If the index is not below the count, the port's name is NULL. */
HEDDLE_API heddle_port heddle_model_input(const heddle_model* model, size_t index);
HEDDLE_API heddle_port heddle_model_output(const heddle_model* model, size_t index);
/* Further inputs that heddle_model_run() takes: those whose default the compiled model holds as a constant. */
HEDDLE_API size_t heddle_model_optional_input_count(const heddle_model* model);
HEDDLE_API heddle_port heddle_model_optional_input(const heddle_model* model, size_t index);

/* The name of the input whose memory an output may use (option "alias"); NULL: none. */
HEDDLE_API const char* heddle_model_output_alias(const heddle_model* model, size_t index);

/* A dense row-major tensor; `data` is copied, NULL means zeros. */
HEDDLE_API heddle_tensor* heddle_tensor_new(heddle_dtype dtype, const int64_t* shape, size_t rank, const void* data,
                                            heddle_error** error);
HEDDLE_API heddle_dtype heddle_tensor_dtype(const heddle_tensor* tensor);
HEDDLE_API size_t heddle_tensor_rank(const heddle_tensor* tensor);
HEDDLE_API const int64_t* heddle_tensor_shape(const heddle_tensor* tensor);
HEDDLE_API size_t heddle_tensor_bytes(const heddle_tensor* tensor);
/* Elements; NULL for text. */
HEDDLE_API const void* heddle_tensor_data(const heddle_tensor* tensor);
HEDDLE_API void heddle_tensor_free(heddle_tensor* tensor);

/* Runs a model on `count` named inputs. `outputs` has room for heddle_model_output_count() handles, which the caller
 * frees; on an error they are NULL. Several threads may run one model at once. */
HEDDLE_API int heddle_model_run(const heddle_model* model, const char* const* names, const heddle_tensor* const* inputs,
                                size_t count, heddle_tensor** outputs, heddle_error** error);

/* The same, but writes to the caller's `outputs`: heddle_model_output_count() tensors of the right dtypes and shapes,
 * or NULL for unwanted outputs. An output may be the input that heddle_model_output_alias() names. */
HEDDLE_API int heddle_model_run_into(const heddle_model* model, const char* const* names,
                                     const heddle_tensor* const* inputs, size_t count, heddle_tensor* const* outputs,
                                     heddle_error** error);

/* A dense row-major tensor in the memory of a model's GPU, which the caller owns. `data`: its address on the device, a
 * multiple of 16. */
typedef struct heddle_device_tensor {
  void* data;
  heddle_dtype dtype;
  size_t rank;
  const int64_t* shape;
} heddle_device_tensor;

/* Compiles for heddle_model_input_count() inputs of these shapes (`data` is ignored), in the model's order, unless that
 * was done. `workspace_bytes` receives the bytes of device memory that heddle_model_enqueue() needs besides inputs and
 * outputs. */
HEDDLE_API int heddle_model_prepare(const heddle_model* model, const heddle_device_tensor* inputs,
                                    size_t* workspace_bytes, heddle_error** error);
/* Enqueues one run on `stream`, a cudaStream_t or CUstream (NULL: the default stream), and returns without copies and
 * without waiting. After heddle_model_prepare() it allocates no device memory, so a stream may capture it into the
 * caller's graph. There are as many inputs and outputs as the model has. `workspace` is aligned to 256 bytes. All of
 * these, and the model, are in use until the stream has passed the run. */
HEDDLE_API int heddle_model_enqueue(const heddle_model* model, const heddle_device_tensor* inputs,
                                    const heddle_device_tensor* outputs, void* workspace, void* stream,
                                    heddle_error** error);

#ifdef __cplusplus
}
#endif

#endif
