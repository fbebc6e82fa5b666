#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Stores what kernels of a GPU hand to each other in 16 bits, where the precision pass computes it in f32: a residual
// sum, an activation that a reduction reads. The kernel that makes a value rounds it as it stores it, and each reader
// widens what it loads. Values whose range or last bits matter stay f32: long sums, squares, exponentials, what feeds a
// decision (ir/analysis/decisions.h), what the graph returns; and so do small ones, whose bytes cost nothing.
ir::Graph narrow_boundaries(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
