#pragma once

#include <optional>
#include <string_view>

namespace heddle::onnx {

// A file that was passed as a model but is not in ONNX's format.
struct FileKind {
  std::string_view what;    // "an ORT model", after "it is"
  std::string_view remedy;  // how to get an ONNX model of it
};

// The kind of a file by its first bytes; nullopt if it may be ONNX.
std::optional<FileKind> foreign_kind(std::string_view bytes);

}  // namespace heddle::onnx
