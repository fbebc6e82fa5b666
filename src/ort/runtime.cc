#include "ort/runtime.h"

#include "base/check.h"

namespace heddle::ort {
namespace {

StatusCode code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kMalformedModel:
    case ErrorCode::kMissingData:
    case ErrorCode::kInvalidNode:
    case ErrorCode::kInvalidIr:
    case ErrorCode::kLimit:
      return StatusCode::kInvalidGraph;
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kInvalidInput:
    case ErrorCode::kValueOutOfRange:
      return StatusCode::kInvalidArgument;
    case ErrorCode::kUnsupportedOperator:
    case ErrorCode::kUnsupportedType:
    case ErrorCode::kUnknownShape:
      return StatusCode::kNotImplemented;
    default:
      return StatusCode::kEpFail;
  }
}

}  // namespace

Runtime::Runtime(const OrtApiBase& base) : api_(base.get_api(kOldestAbi)) {
  if (base.get_api(kOldestAbi) == nullptr) {
    fail(ErrorCode::kInvalidArgument, fmt::format("ONNX Runtime {}", base.get_version_string()),
         fmt::format("Heddle's plug-in needs version 1.{} or later", kOldestAbi), "Update the package onnxruntime");
  }
  ep_api_ = Table(api_(api::kGetEpApi));
  editor_api_ = Table(api_(api::kGetModelEditorApi));
}

void Runtime::check(OrtStatus* status) const {
  if (status == nullptr) return;
  const std::string message = api_(api::kGetErrorMessage, status);
  api_(api::kReleaseStatus, status);
  fail(ErrorCode::kInvalidArgument, "ONNX Runtime", message);
}

void Runtime::log(const OrtLogger* logger, Severity severity, const std::string& message) const {
  OrtStatus* const status = api_(api::kLogMessage, logger, severity, message.c_str(), "heddle", 0, "");
  if (status != nullptr) api_(api::kReleaseStatus, status);
}

OrtStatus* Runtime::status_of(const Error& error) const noexcept {
  return api_(api::kCreateStatus, code_of(error.code()), error.what());
}

}  // namespace heddle::ort
