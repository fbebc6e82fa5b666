#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Rewrites convolutions of images whose pixels are not a multiple of 16 bytes, the size of a GPU load (3 channels of a
// picture, 51 of a sensor), into convolutions of images whose pixels are. Adds zero channels; if the strides allow,
// neighbouring pixels become channels of one pixel. Padding becomes part of the image, so that a line of a window is
// contiguous in memory. Filters get zeros where pixels were joined, so an infinite pixel beside a window makes its
// output NaN. For tensor cores: f16 and bf16, and f32 that is multiplied as tf32.
ir::Graph space_to_depth(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
