#pragma once

#include "ir/graph.h"

namespace heddle::ir {

// True if `conv` is a depthwise convolution over one or two dimensions with one output channel per input channel. If
// channels come first, the convolution filters each channel as a separate plane.
bool filters_planes(const Graph& graph, const Node& conv);

}  // namespace heddle::ir
