#pragma once

#include "frontend/onnx/node_context.h"

namespace heddle::onnx {

// The attributes that convolutions and pools share, over the spatial dimensions.
struct Window {
  ir::Ints kernel, strides, dilations, low, high;

  int64_t span(size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
};

// Reads kernel_shape (or uses `kernel` if the attribute is missing), strides, dilations, pads and auto_pad for an input
// of these spatial extents. Throws kInvalidNode if they do not fit.
Window read_window(const NodeContext& ctx, const Shape& spatial, ir::Ints kernel = {});

// Output extents; with ceil_mode the last window may begin inside the input (or its left padding) and end beyond it.
Shape window_extents(const NodeContext& ctx, const Window& window, const Shape& spatial, bool ceil_mode);

}  // namespace heddle::onnx
