#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// For a GPU: stores f32 values that one kernel passes to another in 16 bits. The values are those that the precision
// pass left in f32, such as residual sums and activations that a reduction reads. The producer rounds them at its
// store; each consumer widens them at its load. Small tensors stay f32. Values also stay f32 if their range or last
// bits matter: long sums, squares, exponentials, operands of decisions (ir/analysis/decisions.h), and results of the
// graph.
ir::Graph narrow_boundaries(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
