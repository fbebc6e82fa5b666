#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Removes everything that works on no elements, so that no later pass, schedule or kernel meets an extent of 0:
// values without elements become empty broadcasts, and nodes that combine no elements become their result, the identity
// of a reduction, zeros of a contraction, the padding of a pad. Loops that run no iteration become their initial
// states. What remains of extent 0 are inputs of the graph and operands of loops, branches, calls and failing gathers.
ir::Graph drop_empty(const ir::Graph& graph, const PassContext& context);

// Whether a graph has a value without elements or a loop without iterations; bodies aside.
bool has_empty(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
