#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Convolutions and spatial windows compute with the channels last: each gets a transpose before and one after it.
// sink_transposes then moves these to the border of the graph. Those that are faster with the channels first
// (channels_first.h) stay as they are.
ir::Graph layout(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
