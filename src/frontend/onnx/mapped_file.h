#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace heddle::onnx {

// A whole file, mapped read-only. The mapping lives as long as a copy of `owner`.
struct MappedFile {
  std::string_view bytes;
  std::shared_ptr<const void> owner;
};

// Throws kFile: absent, not a regular file, no permission.
MappedFile map_file(const std::string& path);

}  // namespace heddle::onnx
