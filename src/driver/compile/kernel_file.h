#pragma once

#include <string>
#include <string_view>

#include "codegen/codegen.h"
#include "target/target.h"

namespace heddle::driver {

// A kernel's text as a file that a person reads, and may edit: the first line identifies the kernel and the original
// content of the rest. So Heddle recognises edited files and replaces only the others.

// "layer_norm_768_7581587e98b0a662.cu": a symbol has letters, digits and underscores only.
std::string kernel_file_name(const std::string& symbol, const Target& target);

// The whole file: the first line, `comment` (lines that begin with "//"), and the text as a unit that compiles alone.
std::string kernel_file(const codegen::KernelText& kernel, const std::string& comment);

// Whether kernel_file() wrote exactly this content.
bool is_unedited(std::string_view file);

}  // namespace heddle::driver
