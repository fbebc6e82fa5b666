#pragma once

#include "frontend/onnx/lowering/op_helpers.h"

// Helpers that the attention operators of ONNX and of ONNX Runtime share.
namespace heddle::onnx {

// The products of lhs [B, H, M, K] with rhs [B, G, ...], contracted over dimension `rhs_contract` of rhs. H is a
// multiple of G: each of the G heads of rhs is used by H/G consecutive heads of lhs.
ValueId grouped_dot(ir::Builder& b, ValueId lhs, ValueId rhs, int64_t rhs_contract);

// The scaled products of queries and keys. In 16-bit types, multiplies both operands by the square root of the scale
// instead of scaling the products, so that products do not overflow.
ValueId scaled_scores(ir::Builder& b, ValueId q, ValueId k, double scale);

// Returns limit * tanh(scores / limit), or the unchanged scores if the limit is 0.
ValueId soft_capped(ir::Builder& b, ValueId scores, double limit);

// Reshapes [B, S, heads * D] to [B, S, heads, D].
ValueId with_heads(NodeContext& ctx, ValueId x, int64_t heads);
// Transposes and reshapes [B, heads, S, D] to [B, S, heads * D].
ValueId without_heads(ir::Builder& b, ValueId x);

// Rotary embedding: rotates pairs of the first `rotated` elements of each head of x [B, S, heads, D]. `cosine` and
// `sine` of the angles have the shape [B or 1, S, 1, rotated / 2]. If `interleaved`, a pair is two adjacent elements;
// otherwise it is the elements i and i + rotated / 2.
ValueId rotate(ir::Builder& b, ValueId x, ValueId cosine, ValueId sine, int64_t rotated, bool interleaved);

}  // namespace heddle::onnx
