#pragma once

#include <vector>

#include "heddle/tensor.h"
#include "tile/core/shape.h"

namespace heddle::schedule {

// For each panel of filters in each group, computes a box of taps. All filters of the panel are zero outside this box.
// `filters` has the shape [groups * o, c, window...]; `width` is the number of filters in a panel. Filters of a
// transposed convolution contain zeros if one phase has fewer taps than another.
std::vector<tile::ConvTaps> panel_taps(const Tensor& filters, const tile::ConvShape& s, int64_t width);

// Returns the total number of taps in the boxes that panel_taps() returned.
int64_t tap_count(const std::vector<tile::ConvTaps>& panels);

}  // namespace heddle::schedule
