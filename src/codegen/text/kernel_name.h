#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/region/cuda/stitch.h"
#include "schedule/region/stitch.h"

namespace heddle::codegen {

// What a kernel computes, as the beginning of its symbol: "layer_norm_768", "softmax_128", "sum_exp_mul". It says what
// the text is made of and nothing else, so that equal texts have equal symbols: no names of the model, no extents that
// are known to the launch only.
std::string kernel_name(const schedule::StitchDesc& body, bool with_extents);
std::string kernel_name(const schedule::CudaStitchDesc& body);

// The operators of an epilogue: "_add_max", "" where there are none.
std::string operators_of(const schedule::ExprPool& pool, const std::vector<schedule::ExprId>& roots);

// The symbol of a kernel whose text is complete except for its name, written as `placeholder`: equal text but
// for comments, equal symbol.
std::string name_kernel(std::string& text, std::string_view prefix, std::string_view placeholder = "KERNEL_NAME");
// Puts a symbol in place of the placeholder.
void set_symbol(std::string& text, const std::string& symbol, std::string_view placeholder = "KERNEL_NAME");

}  // namespace heddle::codegen
