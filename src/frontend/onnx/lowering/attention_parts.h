#pragma once

#include "frontend/onnx/lowering/op_helpers.h"

// What the operators of ONNX and of ONNX Runtime that compute attention have in common.
namespace heddle::onnx {

// Products of [B, H, M, K] with [B, G, ...]; H is a multiple of G and each of the G heads serves H/G query heads.
ValueId grouped_dot(ir::Builder& b, ValueId lhs, ValueId rhs, int64_t rhs_contract);

// The scaled products of queries and keys. In types of 16 bits both take a root of the scale, so that products do not
// overflow.
ValueId scaled_scores(ir::Builder& b, ValueId q, ValueId k, double scale);

// limit * tanh(scores / limit); the scores themselves where the limit is 0.
ValueId soft_capped(ir::Builder& b, ValueId scores, double limit);

// [B, S, heads * D] as [B, S, heads, D].
ValueId with_heads(NodeContext& ctx, ValueId x, int64_t heads);
// [B, heads, S, D] as [B, S, heads * D].
ValueId without_heads(ir::Builder& b, ValueId x);

// x [B, S, heads, D] with pairs among the first `rotated` elements of each head turned by angles whose cosines and
// sines are [B or 1, S, 1, rotated / 2]. Interleaved pairs are neighbours, others are half of `rotated` apart.
ValueId rotate(ir::Builder& b, ValueId x, ValueId cosine, ValueId sine, int64_t rotated, bool interleaved);

}  // namespace heddle::onnx
