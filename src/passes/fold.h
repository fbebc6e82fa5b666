#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Evaluates nodes whose operands are constants, broadcasts of constants or iota, where the result is not much larger
// than what it was made of: a broadcast or an iota alone costs nothing in a kernel, and is left.
ir::Graph fold(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
