#pragma once

#include "ir/graph.h"

namespace heddle::ir {

// Checks all invariants of a graph and its subgraphs: operands precede their users, nodes match their schemas, result
// types are as inferred, and output names are unique. A violation is a bug in a pass: throws kInternal with the node
// and the violated rule.
void verify(const Graph& graph);

}  // namespace heddle::ir
