#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Rewrites products with few results and long sums, for a CPU. There are two cases. A matrix-vector product whose
// operands are both contiguous along the sum becomes a sum of elementwise products: its vector lanes run along the sum,
// whereas the lanes of a matrix product would run over its single column. Any other product is split along the sum into
// parts, which become batches. Each thread then reads and packs only its part; tasks with different results would each
// read whole operands.
ir::Graph long_dots(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
