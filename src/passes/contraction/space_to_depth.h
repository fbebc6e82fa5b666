#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Convolutions of images whose pixels are no whole pieces of 16 bytes, which a GPU loads at once (3 channels of a
// picture, 51 of a sensor), as convolutions of images whose pixels are: zero channels are added, where the strides allow neighbouring pixels become
// channels of one, and the padding becomes part of the image, so that a line of a window is one run of memory. Filters
// get zeros where pixels joined them, so a pixel that is infinite reaches outputs whose window ends beside it, as NaN.
// For tensor cores: f16 and bf16, and f32 that is multiplied as tf32.
ir::Graph space_to_depth(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
