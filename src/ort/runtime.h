#pragma once

#include <string>
#include <utility>

#include "heddle/error.h"
#include "ort/abi.h"

namespace heddle::ort {

// ONNX Runtime's functions, with its errors as exceptions.
class Runtime {
 public:
  // Throws kInvalidArgument if this ONNX Runtime is older than the interface.
  explicit Runtime(const OrtApiBase& base);

  // Throws kInvalidArgument if this ONNX Runtime is older than `version` of the interface, which `what` needs.
  void require(uint32_t version, const std::string& what) const;

  const Table& api() const { return api_; }
  const Table& ep_api() const { return ep_api_; }
  const Table& editor_api() const { return editor_api_; }

  // Throws kInvalidArgument with the status's message, unless it is null; frees the status.
  void check(OrtStatus* status) const;

  // Calls a function that returns a status, and returns what it stores through its last parameter.
  template <typename Result, typename Function, typename... Arguments>
  Result get(Entry<Function> entry, Arguments&&... arguments) const {
    Result result{};
    check(api_(entry, std::forward<Arguments>(arguments)..., &result));
    return result;
  }

  // Runs `action` and returns null, or what it throws as a status. Nothing is thrown across the binary interface.
  template <typename Action>
  OrtStatus* guarded(const Action& action) const noexcept {
    try {
      action();
      return nullptr;
    } catch (const Error& error) {
      return status_of(error);
    } catch (const std::exception& error) {
      return api_(api::kCreateStatus, StatusCode::kFail, error.what());
    }
  }

  void log(const OrtLogger* logger, Severity severity, const std::string& message) const;

 private:
  OrtStatus* status_of(const Error& error) const noexcept;

  const OrtApiBase* base_;
  Table api_, ep_api_, editor_api_;
};

}  // namespace heddle::ort
