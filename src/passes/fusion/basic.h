#pragma once

#include "ir/graph.h"

namespace heddle::passes {

// For the basic policy, also in bodies of loops and branches: gives each reader its own copy of a cheap memory-bound
// value if reading its operands again moves fewer bytes than storing it. Common compilers copy such producers into
// their consumers' kernels.
ir::Graph duplicate_cheap_producers(const ir::Graph& graph);

}  // namespace heddle::passes
