#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Eliminates common subexpressions: merges nodes with equal op, operands and attributes. Constants are compared by
// content.
ir::Graph cse(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
