#pragma once

#include <optional>

#include "passes/quantized/dequantized.h"
#include "target/target.h"

namespace heddle::passes {

// q - zero in 16 bits.
ValueId centred(ir::Builder& b, const Dequantized& operand);

// The quantised value itself, if `cast` is the end of a quantisation whose operand was dequantised with the same
// parameters. Also a division in f64 of f32 operands, whose result is rounded to f32: one in f32 gives the same numbers
// if the target rounds it correctly.
std::optional<ValueId> requantized(DequantizedFinder& finder, ir::Rewriter& r, const Node& cast, const Target& target);

// A dequantised value as a product of q - zero in 16 bits, so that kernels store it in one form only.
std::optional<ValueId> dequantized_from_shorts(DequantizedFinder& finder, ir::Rewriter& r, const Node& mul);

}  // namespace heddle::passes
