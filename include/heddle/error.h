#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "heddle/export.h"

namespace heddle {

// Error codes in numbered families. Each number has a page docs/errors/HDL<number>.md with a sample, the cause and the
// remedy. The family decides the exit code of the command line (exit_code()).
enum class ErrorCode {
  // 1xx: the model
  kMalformedModel = 101,  // not ONNX, truncated, inconsistent protobuf, a cyclic graph
  kMissingData = 102,     // a missing initialiser or external data file
  kInvalidNode = 103,     // a node whose attributes, types or shapes break its operator's rules
  kInvalidIr = 104,       // textual IR that does not parse or does not verify
  kLimit = 105,           // an import would take more nodes, memory, nesting or time than it is allowed
  // 2xx: what the caller passed
  kInvalidArgument = 201,  // a wrong option, flag or API argument
  kInvalidInput = 202,     // a tensor with the wrong name, shape, dtype or file
  kValueOutOfRange = 203,  // data that breaks an operator's rule at run time (an index outside its axis)
  // 3xx: valid, but Heddle cannot do it
  kUnsupportedOperator = 301,
  kUnsupportedType = 302,
  kUnknownShape = 303,  // a shape depends on data that is not known at compile time
  // 4xx: the machine
  kFile = 401,  // a file cannot be read or written
  kNoCompiler = 402,
  kCompilerFailed = 403,
  kOutOfMemory = 404,
  kDamagedArtefact = 405,  // a cache entry or plan whose checksum is wrong
  kDevice = 406,
  // 5xx: our bug
  kInternal = 501,
};

// The only exception that crosses Heddle's API. `where` names the file, node, shapes and dtypes; `why` names the rule
// that was broken; `remedy` says what to do. what() is the three in one text.
class HEDDLE_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string where, std::string why, std::string remedy = {});

  ErrorCode code() const { return code_; }
  const std::string& where() const { return where_; }
  const std::string& why() const { return why_; }
  const std::string& remedy() const { return remedy_; }

 private:
  ErrorCode code_;
  std::string where_, why_, remedy_;
};

// 2 bad input or usage, 3 unsupported, 4 internal or the machine.
HEDDLE_API int exit_code(ErrorCode code);

// Short name of a code, as printed: "malformed model".
HEDDLE_API std::string_view to_string(ErrorCode code);

}  // namespace heddle
