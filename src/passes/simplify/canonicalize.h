#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Rewrites nodes to the canonical forms that later passes and fusion rules expect. Removes identities and merges chains
// of layout ops. Moves constants to the right. Moves broadcasts as late as possible and removes their dimensions of
// extent 1. Uses cheaper ops if their results agree within the rounding of the type. The rules are in
// passes/simplify/canonicalize/.
ir::Graph canonicalize(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
