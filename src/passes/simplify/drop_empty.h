#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Removes operations on empty values, so that no later pass, schedule or kernel meets an extent of 0. Empty values
// become empty broadcasts. Nodes that combine no elements are replaced by their result: a reduction's identity, zeros
// for a contraction, a pad's padding. Loops without iterations become their initial states. Extents of 0 remain only in
// inputs of the graph and in operands of loops, branches, calls and failing gathers.
ir::Graph drop_empty(const ir::Graph& graph, const PassContext& context);

// True if a graph, bodies aside, has a value without elements or a loop without iterations.
bool has_empty(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
