#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Removes all work on no elements, so that no later pass, schedule or kernel meets an extent of 0. Values without
// elements become empty broadcasts; nodes that combine no elements become their result: the identity of a reduction,
// zeros for a contraction, the padding of a pad. Loops without iterations become their initial states. Extents of 0
// remain only in inputs of the graph and in operands of loops, branches, calls and failing gathers.
ir::Graph drop_empty(const ir::Graph& graph, const PassContext& context);

// True if a graph, bodies aside, has a value without elements or a loop without iterations.
bool has_empty(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
