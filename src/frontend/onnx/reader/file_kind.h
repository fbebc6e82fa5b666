#pragma once

#include <optional>
#include <string_view>

namespace heddle::onnx {

// A file that is given for a model and is none in ONNX's form.
struct FileKind {
  std::string_view what;    // "an ORT model", after "it is"
  std::string_view remedy;  // how to get an ONNX model of it
};

// What the first bytes of a file say of its kind; nullopt where they do not speak against ONNX.
std::optional<FileKind> foreign_kind(std::string_view bytes);

}  // namespace heddle::onnx
