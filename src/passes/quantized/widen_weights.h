#pragma once

#include "passes/pass.h"

namespace heddle::passes {

// Widens constant weights of few bits that no product reads in packed form, so that no run widens them. They then take
// as much memory as floats; if all of them took more than half of the device's memory, they stay as they are.
ir::Graph widen_weights(const ir::Graph& graph, const PassContext& context);

// The value of a `dequantize` node, computed in f32 and rounded to the node's type.
Tensor widened(const Node& node, std::span<const Tensor> operands);

}  // namespace heddle::passes
