#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Moves transposes from the operands of ops to their results, through every op that can compute in the other layout. A
// transpose stops where it cancels with its inverse, at a dot (whose attributes select the dimensions to multiply), or
// at a graph output. If a reshape after a transpose merges dimensions, the reshape moves together with the transpose.
// Without this, a normalisation over groups of channels would stop the transpose.
ir::Graph sink_transposes(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
