#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Rewrites convolutions so that the size of a pixel becomes a multiple of 16 bytes, the size of a GPU load. Examples
// are images with 3 channels and sensor data with 51 channels. Adds zero channels. If the strides allow it, joins
// neighbouring pixels into one pixel with more channels. Padding becomes part of the image, so that a row of a window
// is contiguous in memory.
//
// Filters are zero for the joined pixels outside the window, so an infinite pixel next to a window makes the window's
// output NaN. The pass applies to products on tensor cores: f16, bf16, and f32 that is multiplied as tf32.
ir::Graph space_to_depth(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
