#pragma once

#include <optional>
#include <string_view>

namespace heddle::onnx {

// The format of a file that was passed as a model but is not an ONNX model.
struct FileKind {
  std::string_view what;    // "an ORT model", to print after "it is"
  std::string_view remedy;  // how to get an ONNX model from the file
};

// Detects the format of a file from its first bytes. Returns nullopt if the file may be ONNX.
std::optional<FileKind> foreign_kind(std::string_view bytes);

}  // namespace heddle::onnx
