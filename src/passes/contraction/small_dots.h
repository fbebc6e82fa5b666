#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Products of a long matrix with a constant one of a few rows and columns, for a GPU: a mix of attention's heads, a change of a few
// channels. Such a product is memory-bound, so it becomes a sum of products of elements, which one kernel computes
// together with the memory-bound work around it.
ir::Graph small_dots(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
