#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Common subexpressions: nodes of equal op, operands and attributes become one. Constants are compared by content.
ir::Graph cse(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
