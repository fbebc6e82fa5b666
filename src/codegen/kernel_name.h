#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/cuda_stitch.h"
#include "schedule/stitch.h"

namespace heddle::codegen {

// What a kernel computes, as the beginning of its symbol: "layer_norm_768", "softmax_128", "sum_exp_mul". It says what
// the text is made of and nothing else, so that equal texts have equal symbols: no names of the model, no extents that
// are known to the launch only.
std::string kernel_name(const schedule::StitchDesc& body, bool with_extents);
std::string kernel_name(const schedule::CudaStitchDesc& body);

// The operators of an epilogue: "_add_max", "" where there are none.
std::string operators_of(const schedule::ExprPool& pool, const std::vector<schedule::ExprId>& roots);

}  // namespace heddle::codegen
