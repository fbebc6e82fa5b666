#pragma once

#include "ir/graph.h"

namespace heddle::passes {

// The graph as the basic policy wants it, bodies of loops and branches too: a cheap memory-bound value that several
// nodes read is made once for each, where reading its operands again moves fewer bytes than storing it. Common
// compilers copy such producers into their consumers' kernels.
ir::Graph duplicate_cheap_producers(const ir::Graph& graph);

}  // namespace heddle::passes
