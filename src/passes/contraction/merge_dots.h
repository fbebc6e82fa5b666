#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Products of one value with several constant matrices become one product with the matrices side by side, with its
// biases and factors: queries, keys and values of an attention. In f32, f16 and bf16. Only where readers take slices of
// the result at no cost (they reshape, multiply or repeat it). For a GPU: small products cost their latency there, wide ones keep it busier.
ir::Graph merge_dots(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
