#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Unrolls reductions of a few terms whose result is reduced again, such as a sum over the branches of a network and
// then over pixels. A kernel is mapped to the second reduction. With the first one inside, each of its results would
// need its own sweep, in which neighbouring threads read elements that are not neighbours.
ir::Graph unroll_reductions(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
