#pragma once

#include <vector>

#include "ir/graph.h"
#include "target/target.h"

namespace heddle::passes {

// Whether a window spans some of the dimensions behind the first two, and none of those.
bool is_spatial(const ir::Attrs& attrs);

// By node: whether a convolution or spatial window is better computed with the channels first. Weighs predicted time of
// convolutions, whose vectors are full there however few channels they have, against changes of layout between them and
// at the border of the graph. On a GPU only depthwise convolutions and windows may have the channels first, and changes
// of layout alone decide.
std::vector<bool> better_channels_first(const ir::Graph& graph, const Target& target);

}  // namespace heddle::passes
