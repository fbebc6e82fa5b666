#pragma once

#include <cstdint>

#include "ir/attrs.h"

namespace heddle::ir {

// Shape rules that windows and convolutions share.

// Requires `count` values, one per dimension, each in [lowest, 2^31), so that the product of two values fits int64.
// Throws kInvalidNode.
void check_spatial_attr(const char* name, const Ints& values, size_t count, int64_t lowest);

// The output extent of a sliding window. The window has `size` taps at distances of `dilation` elements and moves by
// `stride`. The input has `extent` elements, padded by `low` and `high` (negative: cropped). A window that is larger
// than the padded dimension throws kInvalidNode, unless the dimension is empty before or after padding: its output
// extent is then 0.
int64_t windowed_extent(size_t dim, int64_t extent, int64_t low, int64_t high, int64_t size, int64_t dilation,
                        int64_t stride);

}  // namespace heddle::ir
