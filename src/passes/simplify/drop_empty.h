#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Removes operations on empty values, so that no later pass, schedule or kernel has to handle an extent of 0. Empty
// values become empty broadcasts. A node that combines no elements is replaced by its result: the identity of a
// reduction, zeros for a contraction, the padding values of a pad. Loops without iterations become their initial
// states. Extents of 0 remain only in inputs of the graph and in operands of loops, branches, calls and failing
// gathers.
ir::Graph drop_empty(const ir::Graph& graph, const PassContext& context);

// True if a graph has a value without elements or a loop without iterations. Bodies of loops and branches do not count.
bool has_empty(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
