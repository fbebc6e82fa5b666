#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Brings nodes into the forms that later passes and fusion rules look for: identities removed, chains of layout ops
// merged, constants on the right, broadcasts as late as possible and without dimensions of extent 1, cheaper ops if
// their results agree within the rounding of the type. The rules are in passes/simplify/canonicalize/.
ir::Graph canonicalize(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
