#pragma once

#include <vector>

#include "heddle/tensor.h"
#include "tile/core/shape.h"

namespace heddle::schedule {

// For each panel of each group, a box of the window outside of which its filters [groups * o, c, window...] are zero.
// Filters of a transposed convolution have zeros where a phase has fewer taps than others.
std::vector<tile::ConvTaps> panel_taps(const Tensor& filters, const tile::ConvShape& s, int64_t width);

// Taps of all these panels.
int64_t tap_count(const std::vector<tile::ConvTaps>& panels);

}  // namespace heddle::schedule
