#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Reductions of all columns or all rows of a large product, in two steps: first of a few neighbours, which the epilogue
// of the product can have (ir/analysis/partial_reduction.h), then of what that leaves. The product need not be read
// again, nor be written where nothing else reads it. Not where the result of the reduction meets the product again (a
// softmax, a normalisation): what computes that reads the product once in any case.
ir::Graph epilogue_reductions(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
