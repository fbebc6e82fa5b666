#ifndef HEDDLE_TESTS_ONNXRUNTIME_C_API_H
#define HEDDLE_TESTS_ONNXRUNTIME_C_API_H

/* In place of ONNX Runtime's header, which its Python package does not have: what include/heddle_ort.h and the tests
 * use, with ONNX Runtime's names. Functions are at their positions in the table, the others are left out. */

#include <stddef.h>
#include <stdint.h>

typedef struct OrtEnv OrtEnv;
typedef struct OrtEpDevice OrtEpDevice;
typedef struct OrtKeyValuePairs OrtKeyValuePairs;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtSession OrtSession;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtStatus OrtStatus;
typedef struct OrtValue OrtValue;

typedef enum OrtErrorCode { ORT_OK, ORT_FAIL, ORT_INVALID_ARGUMENT } OrtErrorCode;
typedef enum OrtLoggingLevel { ORT_LOGGING_LEVEL_FATAL = 4 } OrtLoggingLevel;
typedef enum ONNXTensorElementDataType { ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1 } ONNXTensorElementDataType;

typedef struct OrtApi {
  OrtStatus* (*CreateStatus)(OrtErrorCode, const char*);
  void* unused1[1];
  const char* (*GetErrorMessage)(const OrtStatus*);
  OrtStatus* (*CreateEnv)(OrtLoggingLevel, const char*, OrtEnv**);
  void* unused4[3];
  OrtStatus* (*CreateSession)(const OrtEnv*, const char*, const OrtSessionOptions*, OrtSession**);
  void* unused8[1];
  OrtStatus* (*Run)(OrtSession*, const OrtRunOptions*, const char* const*, const OrtValue* const*, size_t,
                    const char* const*, size_t, OrtValue**);
  OrtStatus* (*CreateSessionOptions)(OrtSessionOptions**);
  void* unused11[38];
  OrtStatus* (*CreateTensorWithDataAsOrtValue)(const OrtMemoryInfo*, void*, size_t, const int64_t*, size_t,
                                               ONNXTensorElementDataType, OrtValue**);
  void* unused50[1];
  OrtStatus* (*GetTensorMutableData)(OrtValue*, void**);
  void* unused52[17];
  OrtStatus* (*CreateCpuMemoryInfo)(int allocator, int memory, OrtMemoryInfo**);
  void* unused70[22];
  void (*ReleaseEnv)(OrtEnv*);
  void (*ReleaseStatus)(OrtStatus*);
  void (*ReleaseMemoryInfo)(OrtMemoryInfo*);
  void (*ReleaseSession)(OrtSession*);
  void (*ReleaseValue)(OrtValue*);
  void* unused97[3];
  void (*ReleaseSessionOptions)(OrtSessionOptions*);
  void* unused101[196];
  const char* (*GetKeyValue)(const OrtKeyValuePairs*, const char*);
  void* unused298[3];
  OrtStatus* (*RegisterExecutionProviderLibrary)(OrtEnv*, const char*, const char*);
  OrtStatus* (*UnregisterExecutionProviderLibrary)(OrtEnv*, const char*);
  OrtStatus* (*GetEpDevices)(const OrtEnv*, const OrtEpDevice* const**, size_t*);
  OrtStatus* (*SessionOptionsAppendExecutionProvider_V2)(OrtSessionOptions*, OrtEnv*, const OrtEpDevice* const*, size_t,
                                                         const char* const*, const char* const*, size_t);
  void* unused305[7];
  const char* (*EpDevice_EpName)(const OrtEpDevice*);
  void* unused313[1];
  const OrtKeyValuePairs* (*EpDevice_EpMetadata)(const OrtEpDevice*);
} OrtApi;

typedef struct OrtApiBase {
  const OrtApi* (*GetApi)(uint32_t);
  const char* (*GetVersionString)(void);
} OrtApiBase;

#endif
