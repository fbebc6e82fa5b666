#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Gives every reader its own copy of what is free where it is read and costs memory where it is stored: broadcasts,
// iotas, and slices and lookups of one row that elementwise nodes alone read. A group of a fused graph then never takes
// one from another group. Runs last, since cse undoes it.
ir::Graph clone_cheap_producers(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
