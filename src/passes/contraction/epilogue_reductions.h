#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Splits reductions over all columns or all rows of a large product in two: first over a few neighbours, in the
// product's epilogue (ir/analysis/partial_reduction.h), then over the remaining values. The product is not read again,
// and not written if nothing else reads it. Not done if the result is combined with the product again (a softmax, a
// normalisation): that kernel reads the product once in any case.
ir::Graph epilogue_reductions(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
