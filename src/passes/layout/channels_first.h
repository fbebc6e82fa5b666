#pragma once

#include <vector>

#include "passes/names.h"
#include "target/target.h"

namespace heddle::passes {

// Whether a window spans at least one dimension after the first two, and neither of the first two.
bool is_spatial(const ir::Attrs& attrs);

// By node: whether a convolution or spatial window is better computed with channels first. Weighs the predicted time of
// convolutions, whose vectors are then full even with few channels, against layout changes between nodes and at the
// border of the graph. On a GPU only depthwise convolutions and windows may have channels first, and only layout
// changes count.
std::vector<bool> better_channels_first(const ir::Graph& graph, const Target& target);

}  // namespace heddle::passes
