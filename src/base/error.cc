#include "heddle/error.h"

#include "base/check.h"
#include "base/printable.h"

namespace heddle {
namespace {

std::string compose(ErrorCode code, const std::string& where, const std::string& why, const std::string& remedy) {
  std::string text = fmt::format("HDL{} {}: ", static_cast<int>(code), to_string(code));
  if (!where.empty()) text += where + ": ";
  text += why;
  if (!remedy.empty()) text += ". " + remedy;
  return printable(text, Lines::kMany);
}

}  // namespace

Error::Error(ErrorCode code, std::string where, std::string why, std::string remedy)
    : std::runtime_error(compose(code, where, why, remedy)),
      code_(code),
      where_(std::move(where)),
      why_(std::move(why)),
      remedy_(std::move(remedy)) {}

int exit_code(ErrorCode code) {
  switch (static_cast<int>(code) / 100) {
    case 1:
    case 2:
      return 2;
    case 3:
      return 3;
    default:
      return 4;
  }
}

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kMalformedModel:
      return "malformed model";
    case ErrorCode::kMissingData:
      return "missing data";
    case ErrorCode::kInvalidNode:
      return "invalid node";
    case ErrorCode::kInvalidIr:
      return "invalid IR";
    case ErrorCode::kLimit:
      return "limit exceeded";
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kInvalidInput:
      return "invalid input";
    case ErrorCode::kValueOutOfRange:
      return "value out of range";
    case ErrorCode::kUnsupportedOperator:
      return "unsupported operator";
    case ErrorCode::kUnsupportedType:
      return "unsupported type";
    case ErrorCode::kUnknownShape:
      return "shape unknown at compile time";
    case ErrorCode::kFile:
      return "file error";
    case ErrorCode::kNoCompiler:
      return "no compiler";
    case ErrorCode::kCompilerFailed:
      return "compiler failed";
    case ErrorCode::kOutOfMemory:
      return "out of memory";
    case ErrorCode::kDamagedArtefact:
      return "damaged artefact";
    case ErrorCode::kDevice:
      return "device error";
    case ErrorCode::kInternal:
      return "internal error";
  }
  return "error";
}

void internal_error(const char* file, int line, const char* condition, std::string message) {
  std::string_view path(file);
  if (auto at = path.rfind("/src/"); at != std::string_view::npos) path.remove_prefix(at + 1);
  throw Error(ErrorCode::kInternal, fmt::format("{}:{}", path, line),
              fmt::format("{}{}(check `{}`)", message, message.empty() ? "" : " ", condition),
              "This is a bug in Heddle, not in your input; please report it with the model");
}

}  // namespace heddle
