#pragma once

#include "ir/graph.h"

namespace heddle::ir {

// Checks every invariant of a graph and of its bodies: operands before users, schemas, result types as inferred, unique
// output names. Throws kInternal with the node and the rule; then a pass has a bug.
void verify(const Graph& graph);

}  // namespace heddle::ir
