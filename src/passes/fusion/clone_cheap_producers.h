#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Gives each reader its own copy of a value whose computation within the reader is free, whereas storing the value
// would cost memory traffic. These values are broadcasts, iotas, and slices and one-row lookups that only elementwise
// nodes read. A group of a fused graph then never reads such a value from another group. Must be the last pass, since
// cse would merge the copies.
ir::Graph clone_cheap_producers(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
