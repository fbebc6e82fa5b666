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

Runtime::Runtime(const OrtApiBase& base) : base_(&base), api_(base.get_api(kOldestAbi)) {
  require(kOldestAbi, "Heddle's plug-in");
  ep_api_ = Table(api_(api::kGetEpApi));
  editor_api_ = Table(api_(api::kGetModelEditorApi));
}

void Runtime::require(uint32_t version, const std::string& what) const {
  if (base_->get_api(version) != nullptr) return;
  fail(ErrorCode::kInvalidArgument, fmt::format("ONNX Runtime {}", base_->get_version_string()),
       fmt::format("{} needs version 1.{} or later", what, version), "Update the package onnxruntime");
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
