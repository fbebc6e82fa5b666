#include <array>
#include <cmath>

#include "frontend/onnx/extents/expected_extent.h"
#include "frontend/onnx/lowering/attention_parts.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {
namespace {

// [B, S, heads * D] as [B, heads, S, D]; a rank-4 tensor is so already.
ValueId split_heads(NodeContext& ctx, size_t i, const char* attribute) {
  const Shape shape = ctx.shape(i);
  if (shape.size() == 4) return ctx.in(i);
  if (shape.size() != 3) ctx.invalid(fmt::format("input {} must have rank 3 or 4", i));
  const int64_t heads = ctx.attr_int(attribute);
  if (heads < 1 || shape[2] % heads != 0) ctx.invalid(fmt::format("{} does not divide {}", attribute, shape[2]));
  const ValueId split = ctx.b.reshape(ctx.in(i), {shape[0], shape[1], heads, shape[2] / heads});
  return ctx.b.transpose(split, {0, 2, 1, 3});
}

ValueId with_past(NodeContext& ctx, ValueId x, size_t past) {
  if (!ctx.has(past)) return x;
  const std::array parts = {ctx.in(past), x};
  return ctx.b.concat(parts, 2);
}

// Adds the mask, or -inf where it is false; a mask shorter than the keys hides the rest.
ValueId apply_mask(NodeContext& ctx, ValueId scores, ValueId mask) {
  const int64_t keys = ctx.b.shape(scores)[3];
  const Shape shape = ctx.b.shape(mask);
  const DType type = ctx.b.dtype(mask);
  if (shape.empty() || shape.back() > keys) ctx.invalid("the mask is longer than the keys");
  if (shape.back() < keys && shape.back() != 1) {
    Ints high(shape.size(), 0);
    high.back() = keys - shape.back();
    const ValueId fill = type == DType::kBool ? ctx.b.scalar(type, 0) : ctx.b.scalar(type, -HUGE_VAL);
    mask = ctx.b.pad(mask, fill, Ints(shape.size(), 0), high);
  }
  if (type == DType::kBool) return ctx.b.select(mask, scores, ctx.b.scalar(ctx.b.dtype(scores), -HUGE_VAL));
  return ctx.b.add(scores, ctx.b.cast(mask, ctx.b.dtype(scores)));
}

// i64[1, 1, S, 1] or i64[B, 1, S, 1]: the last key that each query sees in causal attention. Queries follow the keys of
// the past; without a past they are the last of the valid keys.
ValueId causal_limit(NodeContext& ctx, int64_t batch, int64_t queries, int64_t past) {
  const ValueId row = ctx.b.iota(DType::kI64, {1, 1, queries, 1}, 2);
  if (!ctx.has(6) || ctx.has(4)) return ctx.b.binary(Op::kAdd, row, static_cast<double>(past));
  const ValueId length = ctx.b.reshape(ctx.b.cast(ctx.in(6), DType::kI64), {batch, 1, 1, 1});
  return ctx.b.add(ctx.b.binary(Op::kSub, length, static_cast<double>(queries)), row);
}

// Keys that the mask, causality or the length of a sequence hides get the score -inf.
ValueId hide(NodeContext& ctx, ValueId scores, int64_t past) {
  const Shape shape = ctx.b.shape(scores);
  const ValueId key = ctx.b.iota(DType::kI64, {1, 1, 1, shape[3]}, 3);
  if (ctx.has(3)) scores = apply_mask(ctx, scores, ctx.in(3));
  if (ctx.attr_int("is_causal", 0) != 0) {
    scores = apply_mask(ctx, scores, ctx.b.binary(Op::kLe, key, causal_limit(ctx, shape[0], shape[2], past)));
    if (!ctx.has(4)) return scores;  // no query sees a key beyond the length
  }
  if (ctx.has(6)) {
    const ValueId length = ctx.b.reshape(ctx.b.cast(ctx.in(6), DType::kI64), {shape[0], 1, 1, 1});
    scores = apply_mask(ctx, scores, ctx.b.binary(Op::kLt, key, length));
  }
  return scores;
}

// The weights of the keys, 0 in a row that sees no key. Only a mask or a length can hide all keys of a row.
ValueId softmax_of_visible(NodeContext& ctx, ValueId scores) {
  const ValueId weights = ctx.b.softmax(scores, {3});
  if (!ctx.has(3) && !ctx.has(6)) return weights;
  const DType type = ctx.b.dtype(scores);
  const ValueId empty = ctx.b.binary(Op::kEq, ctx.b.reduce("max", scores, {3}, true), -HUGE_VAL);
  return ctx.b.select(empty, ctx.b.scalar(type, 0), weights);
}

// A mask should cover all keys, although the operator accepts a shorter one.
void expect_extents(NodeContext& ctx) {
  const size_t length = ctx.rank(1) == 4 ? 2 : 1;
  if (ctx.has(4) && ctx.has(5)) expect_extent(ctx, {5, 2}, {{4, 2}});
  if (!ctx.has(3) || ctx.rank(3) < 2 || ctx.shape(3).back() == 1) return;  // a broadcast mask has no length
  const auto last = static_cast<size_t>(ctx.rank(3) - 1);
  if (ctx.has(4)) {
    expect_extent(ctx, {3, last}, {{4, 2}, {1, length}});
  } else {
    expect_extent(ctx, {3, last}, {{1, length}});
  }
}

void attention(NodeContext& ctx) {
  const bool packed = ctx.rank(0) == 3;
  expect_extents(ctx);
  const DType type = ctx.dtype(0);
  const ValueId q = split_heads(ctx, 0, "q_num_heads");
  const ValueId k = with_past(ctx, split_heads(ctx, 1, "kv_num_heads"), 4);
  const ValueId v = with_past(ctx, split_heads(ctx, 2, "kv_num_heads"), 5);
  const Shape q_shape = ctx.b.shape(q), k_shape = ctx.b.shape(k), v_shape = ctx.b.shape(v);
  if (k_shape[1] < 1 || q_shape[1] % k_shape[1] != 0 || v_shape[1] != k_shape[1] || q_shape[3] != k_shape[3] ||
      v_shape[2] != k_shape[2]) {
    ctx.invalid(fmt::format("queries {}, keys {} and values {} do not fit each other", to_string(q_shape),
                            to_string(k_shape), to_string(v_shape)));
  }
  const double scale = ctx.attr_float("scale", 1 / std::sqrt(static_cast<double>(q_shape[3])));
  const double softcap = ctx.attr_float("softcap", 0);
  const ValueId raw = scaled_scores(ctx.b, q, k, scale);
  const ValueId capped = soft_capped(ctx.b, raw, softcap);
  const int64_t past = ctx.has(4) ? ctx.shape(4)[2] : 0;
  const ValueId masked = hide(ctx, capped, past);
  const DType precision = ctx.attr_dtype("softmax_precision", type);
  const ValueId weights = ctx.b.cast(softmax_of_visible(ctx, ctx.b.cast(masked, precision)), ctx.b.dtype(v));
  ValueId y = ctx.b.cast(grouped_dot(ctx.b, weights, v, 2), type);
  if (packed) y = without_heads(ctx.b, y);
  ctx.set(0, y);
  ctx.set(1, k);
  ctx.set(2, v);
  const std::array stages = {raw, capped, masked, weights};
  const int64_t mode = ctx.attr_int("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) ctx.invalid("qk_matmul_output_mode must be 0 to 3");
  ctx.set(3, ctx.b.cast(stages[static_cast<size_t>(mode)], type));
}

// Attention whose scores and probabilities the model may change by graphs of its own.
void flex_attention(NodeContext& ctx) {
  const Shape q = ctx.shape(0), k = ctx.shape(1), v = ctx.shape(2);
  if (q.size() != 4 || k.size() != 4 || v.size() != 4 || k[1] < 1 || q[1] % k[1] != 0 || v[1] != k[1]) {
    ctx.invalid("queries, keys and values do not fit each other");
  }
  const DType type = ctx.dtype(0);
  const DType precision = ctx.attr_dtype("softmax_precision", wide_dtype(type));
  const auto changed = [&](const char* graph, ValueId x) {
    if (!ctx.has_attr(graph)) return x;
    const Value input = x;
    const std::vector<Value> results = ctx.inline_graph(ctx.attr_graph(graph), std::span(&input, 1));
    const bool fits = results.size() == 1 && results[0].is_tensor() && ctx.b.type(results[0].tensor()) == ctx.b.type(x);
    if (!fits) ctx.invalid(fmt::format("{} must give one tensor of its input's type", graph));
    return results[0].tensor();
  };
  const double scale = ctx.attr_float("scale", 1 / std::sqrt(static_cast<double>(q[3])));
  const ValueId keys = ctx.b.cast(ctx.in(1), precision);
  const ValueId raw = grouped_dot(ctx.b, ctx.b.cast(ctx.in(0), precision), keys, 3);
  const ValueId scores = changed("score_mod", ctx.b.binary(Op::kMul, raw, scale));
  const ValueId weights = changed("prob_mod", ctx.b.softmax(scores, {3}));
  ctx.set(0, ctx.b.cast(grouped_dot(ctx.b, weights, ctx.b.cast(ctx.in(2), precision), 2), type));
}

// Rotates pairs of elements of each head by angles that depend on the position.
void rotary_embedding(NodeContext& ctx) {
  const Shape shape = ctx.shape(0);
  const bool packed = shape.size() == 3;
  if (!packed && shape.size() != 4) ctx.invalid("the input must have rank 3 or 4");
  ValueId x;  // [B, S, heads, D]
  if (packed) {
    const int64_t heads = ctx.attr_int("num_heads");
    if (heads < 1 || shape[2] % heads != 0) ctx.invalid("num_heads does not divide the hidden size");
    x = ctx.b.reshape(ctx.in(0), {shape[0], shape[1], heads, shape[2] / heads});
  } else {
    x = ctx.b.transpose(ctx.in(0), {0, 2, 1, 3});
  }
  const Shape s = ctx.b.shape(x);
  int64_t rotated = ctx.attr_int("rotary_embedding_dim", 0);
  if (rotated == 0) rotated = s[3];
  if (rotated < 0 || rotated > s[3] || rotated % 2 != 0) ctx.invalid("rotary_embedding_dim does not fit the head size");
  const auto angles = [&](size_t i) {  // [B, S, 1, rotated / 2]
    ValueId cache = ctx.in(i);
    if (ctx.has(3)) cache = ctx.b.gather(cache, ctx.in(3), 0);
    return unsqueeze(ctx.b, cache, {2});
  };
  const ValueId cosine = angles(1), sine = angles(2);
  const ValueId y = rotate(ctx.b, x, cosine, sine, rotated, ctx.attr_int("interleaved", 0) != 0);
  ctx.set(0, packed ? ctx.b.reshape(y, shape) : ctx.b.transpose(y, {0, 2, 1, 3}));
}

}  // namespace

std::span<const OpHandler> attention_ops() {
  static constexpr std::array kTable = {
      OpHandler{"", "Attention", 23, kAnyVersion, attention},
      OpHandler{"ai.onnx.preview", "FlexAttention", 1, kAnyVersion, flex_attention},
      OpHandler{"", "RotaryEmbedding", 23, kAnyVersion, rotary_embedding},
  };
  return kTable;
}

}  // namespace heddle::onnx
