#pragma once

#include "ir/graph.h"

namespace heddle::ir {

// True for a depthwise convolution with one output channel per input channel, over one or two dimensions. With channels
// first, each channel is a separate plane.
bool filters_planes(const Graph& graph, const Node& conv);

}  // namespace heddle::ir
