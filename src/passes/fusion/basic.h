#pragma once

#include "ir/graph.h"

namespace heddle::passes {

// A pass of the basic fusion policy, which also processes the bodies of loops and branches. It gives each reader of a
// cheap memory-bound value its own copy of the node that computes the value, if reading the node's operands again moves
// fewer bytes than storing the value. Common compilers also duplicate such producers into their consumers' kernels.
ir::Graph duplicate_cheap_producers(const ir::Graph& graph);

}  // namespace heddle::passes
