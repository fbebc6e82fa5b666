#pragma once

#include "frontend/onnx/lowering/op_helpers.h"

// Parts that the attention operators of ONNX and of ONNX Runtime have in common.
namespace heddle::onnx {

// Products of [B, H, M, K] with [B, G, ...]; H is a multiple of G and each of the G heads serves H/G query heads.
ValueId grouped_dot(ir::Builder& b, ValueId lhs, ValueId rhs, int64_t rhs_contract);

// The scaled products of queries and keys. In 16-bit types both operands are scaled by a root of the scale, so that
// products do not overflow.
ValueId scaled_scores(ir::Builder& b, ValueId q, ValueId k, double scale);

// limit * tanh(scores / limit); the scores unchanged if the limit is 0.
ValueId soft_capped(ir::Builder& b, ValueId scores, double limit);

// [B, S, heads * D] as [B, S, heads, D].
ValueId with_heads(NodeContext& ctx, ValueId x, int64_t heads);
// [B, heads, S, D] as [B, S, heads * D].
ValueId without_heads(ir::Builder& b, ValueId x);

// Rotates pairs among the first `rotated` elements of each head of x [B, S, heads, D]. The cosines and sines of the
// angles are [B or 1, S, 1, rotated / 2]. Interleaved pairs are adjacent elements; the elements of other pairs are
// rotated / 2 apart.
ValueId rotate(ir::Builder& b, ValueId x, ValueId cosine, ValueId sine, int64_t rotated, bool interleaved);

}  // namespace heddle::onnx
