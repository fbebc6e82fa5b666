#pragma once

#include "ir/graph.h"

namespace heddle::ir {

// Whether a convolution has a filter for each channel of its image, makes one channel of it, and slides over one or two
// dimensions: with the channels first each channel is a plane of its own.
bool filters_planes(const Graph& graph, const Node& conv);

}  // namespace heddle::ir
