#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Splits a reduction over all columns or all rows of a large product into two steps. The first step reduces a few
// neighbouring values in the product's epilogue (ir/analysis/partial_reduction.h); the second step reduces the
// remaining values. The product then need not be read for the reduction, and need not be written if nothing else reads
// it. The pass skips reductions whose result is combined with the product again (a softmax, a normalisation), because
// the kernel that combines them reads the product in any case.
ir::Graph epilogue_reductions(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
