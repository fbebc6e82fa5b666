#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Moves operands of loops and branches that are computed from constants into the bodies, so that kernels of a body can
// read packed constants. A body receives the computation and not its result, so that passes over the body see, for
// example, how weights are dequantised.
ir::Graph sink_constants(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
