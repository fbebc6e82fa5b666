#pragma once

#include "ir/graph.h"

namespace heddle::ir {

// Checks every invariant of a graph and of its bodies: operands before users, schemas, result types as inferred,
// outputs named once. Throws kInternal naming the node and the rule (a pass broke it).
void verify(const Graph& graph);

}  // namespace heddle::ir
