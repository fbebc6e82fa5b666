#pragma once

#include <string>
#include <string_view>

#include "codegen/codegen.h"
#include "target/target.h"

namespace heddle::driver {

// A kernel's source text as a file for people to read and edit. The first line identifies the kernel and holds a hash
// of the original content. With that line, Heddle recognises edited files and overwrites only unedited ones.

// The file name of a kernel: "layer_norm_768_7581587e98b0a662.cu". A symbol has letters, digits and underscores only.
std::string kernel_file_name(const std::string& symbol, const Target& target);

// The whole file: the first line, `comment` (lines that begin with "//"), and the kernel as a self-contained
// translation unit.
std::string kernel_file(const codegen::KernelText& kernel, const std::string& comment);

// True if the content is exactly as kernel_file() wrote it.
bool is_unedited(std::string_view file);

}  // namespace heddle::driver
