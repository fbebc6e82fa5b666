#pragma once

#include <cstdint>

#include "ir/attrs.h"

namespace heddle::ir {

// Shape rules that windows and convolutions share.

// Requires one value in [lowest, 2^31) per dimension, so that the product of two stays within int64. Throws
// kInvalidNode.
void check_spatial_attr(const char* name, const Ints& values, size_t count, int64_t lowest);

// Output extent of a window of `size` taps, `dilation` apart, that moves by `stride` over `extent` elements padded by
// low and high (negative: cropped). An empty dimension, or one that cropping empties, has no output; a window wider
// than the padded dimension throws kInvalidNode.
int64_t windowed_extent(size_t dim, int64_t extent, int64_t low, int64_t high, int64_t size, int64_t dilation,
                        int64_t stride);

}  // namespace heddle::ir
