#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// For a CPU: rewrites products with few results and long sums. A product with a vector whose operands are both
// contiguous along the sum becomes a sum of elementwise products: its vector lanes run along the sum, those of a matrix
// product would run over one column. Any other is split along the sum, one batch per part: a thread then reads and
// packs only its part, while tasks with different results would each read whole operands.
ir::Graph long_dots(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
