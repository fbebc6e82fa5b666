#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Marks products and quotients that feed a decision (ir/analysis/decisions.h) as `rounded`. Kernels round the marked
// results to their type before adding them to anything, and divide exactly.
ir::Graph keep_roundings(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
