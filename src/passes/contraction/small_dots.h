#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// For a GPU: rewrites products of a long matrix with a constant one of a few rows and columns, such as a mix of
// attention's heads or a change of a few channels. Such a product is memory-bound. It becomes a sum of products of
// elements, which one kernel computes together with the memory-bound work around it.
ir::Graph small_dots(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
