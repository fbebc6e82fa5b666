#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Gives each reader its own copy of values that are free where they are read but cost memory traffic if stored:
// broadcasts, iotas, and slices and one-row lookups that only elementwise nodes read. A group of a fused graph then
// never takes one from another group. Runs last, since cse undoes it.
ir::Graph clone_cheap_producers(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
