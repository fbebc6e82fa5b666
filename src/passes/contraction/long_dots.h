#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Products of few results with long sums, for a CPU. A product with a vector, both of whose operands lie along the sum,
// becomes a sum of products of elements: its lanes run along the sum, where those of a matrix product would run over
// one column. Another one is cut into parts of the sum, a batch each: a thread reads and packs its part only, while
// tasks with different results would each read whole operands.
ir::Graph long_dots(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
