#pragma once

#include <vector>

#include "heddle/tensor.h"
#include "tile/core/shape.h"

namespace heddle::schedule {

// For each panel of each group, a box of the window outside which the panel's filters are zero. Filters are [groups *
// o, c, window...]. Filters of a transposed convolution have zeros if a phase has fewer taps than others.
std::vector<tile::ConvTaps> panel_taps(const Tensor& filters, const tile::ConvShape& s, int64_t width);

// The total number of taps of these panels.
int64_t tap_count(const std::vector<tile::ConvTaps>& panels);

}  // namespace heddle::schedule
