#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Moves transposes from the operands of ops to their results, through every op that can compute in the other layout. A
// transpose stops where it cancels with its inverse, at an op that names its dimensions (dot), or at a graph output.
// Reshapes that merge dimensions after a transpose move along with it; otherwise a normalisation over groups of
// channels would stop the transpose.
ir::Graph sink_transposes(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
