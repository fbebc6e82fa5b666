#pragma once

#include "codegen/codegen.h"
#include "schedule/stitch.h"

namespace heddle::codegen {

// With `marked`, as for all emitters for a CPU: the symbol is a prefix yet, the text has KERNEL_NAME in its place and
// marks around its numbers (numbers.h).
KernelSource emit_stitch(const schedule::KernelDesc& desc, const schedule::StitchDesc& body,
                         const schedule::Config& config, bool marked = false);

// The symbol of a kernel whose text is complete except for its name, written as `placeholder`: equal text but
// for comments, equal symbol.
std::string name_kernel(std::string& text, std::string_view prefix, std::string_view placeholder = "KERNEL_NAME");

}  // namespace heddle::codegen
