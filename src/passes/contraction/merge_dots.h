#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Merges products of one value with several constant matrices into one product with the matrices side by side,
// including biases and factors: queries, keys and values of an attention. For f32, f16 and bf16, and only if readers
// can slice the result at no cost (they reshape, multiply or repeat it). For a GPU, where each small product costs its
// latency and a wide one keeps the device busier.
ir::Graph merge_dots(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
