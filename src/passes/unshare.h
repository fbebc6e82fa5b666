#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Gives every reader its own copy of broadcasts and iotas, which are free where they are read and cost memory where
// they are stored: a group of a fused graph then never takes one from another group. Runs last, since cse undoes it.
ir::Graph unshare(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
