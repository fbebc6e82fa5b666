#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// For a GPU: kernels pass f32 values to each other in 16 bits where the precision pass left them f32, such as residual
// sums and activations that a reduction reads. The producer rounds at its store; each reader widens at its load. Values
// stay f32 if they are small, or if their range or last bits matter (long sums, squares, exponentials, operands of
// decisions as in ir/analysis/decisions.h, results of the graph).
ir::Graph narrow_boundaries(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
