#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Marks products and quotients that feed a decision (ir/analysis/decisions.h) as `rounded`. Kernels round a marked
// result to its type before they add it to another value, and they do not approximate a marked quotient. Casts that
// feed a decision lose `excess_precision`.
ir::Graph keep_roundings(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
