#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Moves transposes from operands to results, through every op that can compute in the other layout, until they meet
// their inverse, an op that names its dimensions (dot), or the border of the graph. Reshapes that merge dimensions
// after a transpose move along, so that a normalisation over groups of channels does not stop them.
ir::Graph sink_transposes(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
