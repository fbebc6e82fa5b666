#pragma once

#include <vector>

#include "passes/names.h"
#include "target/target.h"

namespace heddle::passes {

// True if a window is spatial: it has extent 1 in dimensions 0 and 1, and there is at least one more dimension.
bool is_spatial(const ir::Attrs& attrs);

// For each node: true if it is a convolution or spatial window that runs better with channels first. On a CPU, weighs
// the predicted times of convolutions against the cost of layout changes between nodes and at the inputs and outputs of
// the graph. With channels first, vectors are full even if there are few channels. On a GPU, only depthwise
// convolutions and windows may have channels first, and only the cost of layout changes counts.
std::vector<bool> better_channels_first(const ir::Graph& graph, const Target& target);

}  // namespace heddle::passes
