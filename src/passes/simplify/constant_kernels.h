#pragma once

#include <optional>
#include <span>

#include "ir/graph.h"
#include "passes/rewrite/view.h"

namespace heddle::passes {

// Operations on constants, computed in the constants' own types at memory speed. Weights have up to 1e8 elements, for
// which the float64 reference evaluator is too slow.

// Copies the elements of a view of `tensor` into a dense tensor.
Tensor gather_view(const Tensor& tensor, const StridedView& view);
Tensor transposed(const Tensor& tensor, const ir::Ints& perm);
// Converts f32 to f16 or bf16, and f16, bf16, bytes, i32 and i64 to f32. Converts integers of up to 32 bits, modulo the
// range of `to`, except to unsigned ones of more than 8 bits. Returns nullopt for other types.
std::optional<Tensor> converted(const Tensor& tensor, DType to);
// Multiplies an f32 tensor by one f32 factor for each index along `dim`.
Tensor scaled_along(const Tensor& tensor, int64_t dim, std::span<const float> factors);

// Evaluates a transpose, reshape, slice, reverse, pad, broadcast, concat, cast, common arithmetic of f32, i16 and i32,
// sums of i32, or bits of unsigned bytes. Returns nullopt if there is no kernel for the node. Rounds like the reference
// evaluator with EvalOptions::round.
std::optional<Tensor> evaluate_dense(const ir::Node& node, std::span<const Tensor> operands);

}  // namespace heddle::passes
