#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// For a GPU: rewrites products of a long matrix and a small constant matrix as sums of products of elements. Examples
// are products that mix the heads of an attention or convert a few channels. Such a product is memory-bound. Once it is
// a sum, one kernel can compute it together with the adjacent memory-bound ops.
ir::Graph small_dots(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
