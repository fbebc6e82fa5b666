#pragma once

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Computes products and convolutions of two dequantised operands, (q - zero) * scale with q in 8 bits, in integers with
// sums of 32 bits. The scales multiply the sums. Zero points become corrections of the sums where the target multiplies
// bytes (Target::multiplies_bytes()); otherwise operands become q - zero in 16 bits. Integer products of other forms
// are brought to the same ones. Drops a dequantisation that is followed by a quantisation of equal parameters.
// The pass comes before constants are folded, which would dequantise weights.
ir::Graph integer_products(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
