#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Writes out reductions of a few terms whose result is reduced again, as the sum over the branches of a network and
// then over pixels. The second reduction is the one that a kernel is mapped to: with the first one inside, each of its
// results would be a sweep of its own, in which neighbouring threads read elements that are not neighbours.
ir::Graph unroll_reductions(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
