#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Merges products of one value with several constant matrices into one product with the concatenated matrix. Biases and
// factors are merged, too. An example is the queries, keys and values of an attention. Types: f32, f16 and bf16.
// Requires that readers can slice the result at no cost: they reshape, multiply or repeat it, or normalise its heads.
// Only for GPUs, where each small product takes at least its latency, and one wide product uses more of the device.
ir::Graph merge_dots(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
