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
  static constexpr std::pair<ErrorCode, std::string_view> kNames[] = {
      {ErrorCode::kMalformedModel, "malformed model"},
      {ErrorCode::kMissingData, "missing data"},
      {ErrorCode::kInvalidNode, "invalid node"},
      {ErrorCode::kInvalidIr, "invalid IR"},
      {ErrorCode::kLimit, "limit exceeded"},
      {ErrorCode::kInvalidArgument, "invalid argument"},
      {ErrorCode::kInvalidInput, "invalid input"},
      {ErrorCode::kValueOutOfRange, "value out of range"},
      {ErrorCode::kUnsupportedOperator, "unsupported operator"},
      {ErrorCode::kUnsupportedType, "unsupported type"},
      {ErrorCode::kUnknownShape, "shape unknown at compile time"},
      {ErrorCode::kFile, "file error"},
      {ErrorCode::kNoCompiler, "no compiler"},
      {ErrorCode::kCompilerFailed, "compiler failed"},
      {ErrorCode::kOutOfMemory, "out of memory"},
      {ErrorCode::kDamagedArtefact, "damaged artefact"},
      {ErrorCode::kDevice, "device error"},
      {ErrorCode::kInternal, "internal error"},
  };
  for (const auto& [known, name] : kNames) {
    if (known == code) return name;
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
