#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Makes convolutions and spatial windows compute with the channels last. Each of them gets a transpose before it and
// one after it; sink_transposes then moves the transposes to the border of the graph. Operations that are faster with
// the channels first (channels_first.h) are not changed.
ir::Graph layout(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
