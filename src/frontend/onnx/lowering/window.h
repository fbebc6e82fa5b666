#pragma once

#include "frontend/onnx/node_context.h"

namespace heddle::onnx {

// The attributes that convolutions and pools share. Each array has one element per spatial dimension.
struct Window {
  ir::Ints kernel, strides, dilations, low, high;

  int64_t span(size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
};

// Reads kernel_shape, strides, dilations, pads and auto_pad for an input with extents `spatial`. If kernel_shape is
// missing, uses `kernel`. Throws kInvalidNode if the attributes do not fit the input.
Window read_window(const NodeContext& ctx, const Shape& spatial, ir::Ints kernel = {});

// Returns the spatial output extents. With `ceil_mode`, the last window may begin inside the input (or its left
// padding) and extend past its end.
Shape window_extents(const NodeContext& ctx, const Window& window, const Shape& spatial, bool ceil_mode);

}  // namespace heddle::onnx
