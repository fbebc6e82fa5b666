#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Kernels of a GPU hand f32 values to each other in 16 bits where the precision pass left them f32: residual sums,
// activations that a reduction reads. The kernel that makes a value rounds it at its store, and each reader widens what
// it loads. Values stay f32 if their range or their last bits matter (long sums, squares, exponentials, operands of
// decisions as in ir/analysis/decisions.h, results of the graph), and if they are small.
ir::Graph narrow_boundaries(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
