#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// For a GPU: rounds f32 values to 16 bits where one kernel passes them to another through memory. This applies to
// values that the precision pass left in f32, such as residual sums and activations that a reduction reads. The
// producer rounds a value at its store; each consumer widens it at its load. Small tensors stay f32. Values also stay
// f32 if their range or last bits matter: long sums, squares, exponentials, operands of decisions
// (ir/analysis/decisions.h), and results of the graph.
ir::Graph narrow_boundaries(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
