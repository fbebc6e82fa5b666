#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "frontend/onnx/extents/expected_extent.h"
#include "frontend/onnx/lowering/attention_parts.h"
#include "frontend/onnx/lowering/quantize.h"
#include "frontend/onnx/op_registry.h"

// ONNX Runtime's operators of transformers, which its optimiser, Olive and the exporters of Hugging Face write.
namespace heddle::onnx {
namespace {

void refuse_attribute(NodeContext& ctx, const char* name) {
  if (ctx.attr_int(name, 0) != 0) ctx.unsupported(fmt::format("{} is not supported", name));
}

void refuse_input(NodeContext& ctx, size_t i, const char* name) {
  if (ctx.has(i)) ctx.unsupported(fmt::format("its input {} is not supported", name));
}

// Queries [B, N, S, D], keys [B, G, T, D], values [B, G, T, E].
struct Projections {
  ValueId q, k, v;
};

// Which keys a query may see, as bool[B or 1, 1, S or 1, T], from a mask of any of the forms that share an input.
ValueId visible_keys(NodeContext& ctx, size_t mask, int64_t batch, int64_t past, int64_t queries, int64_t keys) {
  ir::Builder& b = ctx.b;
  const ValueId m = ctx.in(mask);
  const Shape shape = ctx.shape(mask);
  const ValueId key = b.iota(DType::kI64, {1, 1, 1, keys}, 3);
  const auto bounds = [&](int64_t row) {
    return b.reshape(b.cast(b.slice_dim(m, 0, row * batch, (row + 1) * batch), DType::kI64), {batch, 1, 1, 1});
  };
  if (shape == Shape{batch}) return b.binary(Op::kLt, key, bounds(0));
  if (shape == Shape{2 * batch}) {
    return b.binary(Op::kAnd, b.binary(Op::kLt, key, bounds(0)), b.binary(Op::kGe, key, bounds(1)));
  }
  ValueId seen = b.binary(Op::kGt, m, 0.0);
  if (shape == Shape{batch, keys}) return b.reshape(seen, {batch, 1, 1, keys});
  if (shape == Shape{batch, queries, keys}) return b.reshape(seen, {batch, 1, queries, keys});
  if (shape.size() == 4 && shape[0] == batch && shape[1] == 1 && shape[2] >= past + queries && shape[3] >= keys) {
    return b.slice(seen, {0, 0, past, 0}, {batch, 1, past + queries, keys});
  }
  ctx.unsupported(fmt::format("a mask of shape {} for {} sequences of {} queries and {} keys is not supported",
                              to_string(shape), batch, queries, keys));
}

// bool[1, 1, S, T]: a query sees the keys up to its own.
ValueId earlier_keys(ir::Builder& b, int64_t past, int64_t queries, int64_t keys) {
  const Shape plane = {1, 1, queries, keys};
  const ValueId row = b.binary(Op::kAdd, b.iota(DType::kI64, plane, 2), static_cast<double>(past));
  return b.binary(Op::kLe, b.iota(DType::kI64, plane, 3), row);
}

// Attention with masks as ONNX Runtime applies them: what a mask hides loses `mask_filter_value` (a row that is hidden
// as a whole keeps its order), what lies in the future is never seen. Statistics are in f32 at least.
ValueId masked_attention(NodeContext& ctx, const Projections& x, int64_t past, std::optional<size_t> mask,
                         std::optional<size_t> bias) {
  ir::Builder& b = ctx.b;
  const Shape q = b.shape(x.q), k = b.shape(x.k), v = b.shape(x.v);
  if (q[0] != k[0] || q[1] != k[1] || q[3] != k[3] || v[1] != k[1] || v[2] != k[2]) {
    ctx.invalid(fmt::format("queries {}, keys {} and values {} do not fit each other", to_string(q), to_string(k),
                            to_string(v)));
  }
  const double given = ctx.attr_float("scale", 0);
  const double scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(q[3]));
  const DType type = b.dtype(x.q), wide = wide_dtype(type);
  ValueId scores = b.cast(scaled_scores(b, x.q, x.k, scale), wide);
  if (mask && ctx.has(*mask)) {
    const ValueId seen = visible_keys(ctx, *mask, q[0], past, q[2], k[2]);
    const ValueId hidden = b.scalar(wide, ctx.attr_float("mask_filter_value", -10000));
    scores = b.add(scores, b.select(seen, b.scalar(wide, 0), hidden));
  }
  if (bias && ctx.has(*bias)) scores = b.add(scores, b.cast(ctx.in(*bias), wide));
  if (ctx.attr_int("unidirectional", 0) != 0) {
    scores = b.select(earlier_keys(b, past, q[2], k[2]), scores, b.scalar(wide, std::numeric_limits<float>::lowest()));
  }
  const ValueId weights = b.cast(b.softmax(scores, {3}), type);
  return without_heads(b, grouped_dot(b, weights, x.v, 2));
}

ValueId heads_first(NodeContext& ctx, ValueId x, int64_t heads) {
  return ctx.b.transpose(with_heads(ctx, x, heads), {0, 2, 1, 3});
}

// A mask or bias of scores covers the past keys and the new ones; a mask of one row holds counts of keys.
void expect_keys(NodeContext& ctx, size_t input, std::optional<InputExtent> past, InputExtent fresh) {
  if (!ctx.has(input) || ctx.rank(input) < 2) return;
  const InputExtent last{input, static_cast<size_t>(ctx.rank(input) - 1)};
  past ? expect_extent(ctx, last, {*past, fresh}) : expect_extent(ctx, last, {fresh});
}

ValueId with_past(ir::Builder& b, std::optional<ValueId> past, ValueId x) {
  if (!past) return x;
  const std::array parts = {*past, x};
  return b.concat(parts, 2);
}

// From the projected queries, keys and values [B, S, sum of sizes]; `past` is the input of both earlier states.
void packed_attention(NodeContext& ctx, ValueId projected, const Ints& sizes, size_t mask, size_t past_input,
                      std::optional<size_t> bias) {
  ir::Builder& b = ctx.b;
  refuse_attribute(ctx, "do_rotary");
  refuse_attribute(ctx, "past_present_share_buffer");
  const int64_t heads = ctx.attr_int("num_heads");
  const auto part = [&](int64_t from, int64_t size) {
    return heads_first(ctx, b.slice_dim(projected, 2, from, from + size), heads);
  };
  Projections x{part(0, sizes[0]), part(sizes[0], sizes[1]), part(sizes[0] + sizes[1], sizes[2])};
  int64_t past = 0;
  if (ctx.has(past_input)) {
    const Shape shape = ctx.shape(past_input);
    if (shape.size() != 5 || shape[0] != 2) ctx.invalid("past must have shape [2, batch, heads, length, head size]");
    past = shape[3];
    expect_keys(ctx, mask, InputExtent{past_input, 3}, {0, 1});
    if (bias) expect_keys(ctx, *bias, InputExtent{past_input, 3}, {0, 1});
    const auto half = [&](int64_t i) {
      return b.reshape(b.slice_dim(ctx.in(past_input), 0, i, i + 1), {shape[1], shape[2], shape[3], shape[4]});
    };
    x.k = with_past(b, half(0), x.k);
    x.v = with_past(b, half(1), x.v);
  }
  ctx.set(0, masked_attention(ctx, x, past, mask, bias));
  if (!ctx.wants(1)) return;
  const std::array present = {unsqueeze(b, x.k, {0}), unsqueeze(b, x.v, {0})};
  ctx.set(1, b.concat(present, 0));
}

void microsoft_attention(NodeContext& ctx) {
  ir::Builder& b = ctx.b;
  refuse_input(ctx, 6, "past_sequence_length");
  ValueId projected = b.matmul(ctx.in(0), ctx.in(1));
  if (ctx.has(2)) projected = b.add(projected, ctx.in(2));
  const Shape shape = b.shape(projected);
  if (shape.size() != 3) ctx.invalid("an input of rank 3 and weights of rank 2 expected");
  const Ints sizes = ctx.attr_ints("qkv_hidden_sizes", Ints(3, shape[2] / 3));
  if (sizes.size() != 3 || sizes[0] + sizes[1] + sizes[2] != shape[2]) {
    ctx.invalid(fmt::format("qkv_hidden_sizes do not add up to {}", shape[2]));
  }
  packed_attention(ctx, projected, sizes, 3, 4, 5);
}

// The same with a projection of quantised numbers.
void quantized_attention(NodeContext& ctx) {
  ir::Builder& b = ctx.b;
  const ValueId sum =
      b.cast(integer_matmul(ctx, ctx.in(0), ctx.optional_in(6), ctx.in(1), ctx.optional_in(7)), DType::kF32);
  const ValueId scale = b.mul(b.reshape(ctx.in(3), {}), ctx.in(4));
  const ValueId projected = b.add(b.mul(sum, scale), ctx.in(2));
  const Shape shape = b.shape(projected);
  if (shape.size() != 3 || shape[2] % 3 != 0) ctx.invalid("queries, keys and values of one size expected");
  packed_attention(ctx, projected, Ints(3, shape[2] / 3), 5, 8, std::nullopt);
}

// The queries, keys and values of MultiHeadAttention, of which one tensor may hold several and which may have heads
// already; a bias is added to those that are projections.
Projections standalone_operands(NodeContext& ctx, int64_t heads) {
  ir::Builder& b = ctx.b;
  int64_t taken = 0;
  const auto projection = [&](ValueId x) {
    const int64_t size = b.shape(x).back();
    if (ctx.has(3)) x = b.add(x, b.slice_dim(ctx.in(3), 0, taken, taken + size));
    taken += size;
    return heads_first(ctx, x, heads);
  };
  const auto packed = [&](size_t input, int64_t i) {  // part i of [B, S, heads, parts, D]
    const Shape s = ctx.shape(input);
    return projection(b.reshape(b.slice_dim(ctx.in(input), 3, i, i + 1), {s[0], s[1], s[2] * s[4]}));
  };
  if (ctx.rank(0) == 5) {
    if (ctx.shape(0)[3] != 3 || ctx.has(1) || ctx.has(2)) ctx.invalid("a packed query holds three and stands alone");
    const ValueId q = packed(0, 0), k = packed(0, 1);
    return {q, k, packed(0, 2)};
  }
  const ValueId q = projection(ctx.in(0));
  if (ctx.rank(1) == 5) {
    if (ctx.shape(1)[3] != 2 || ctx.has(2)) ctx.invalid("a packed key holds two and replaces the value");
    const ValueId k = packed(1, 0);
    return {q, k, packed(1, 1)};
  }
  if (ctx.rank(1) == 4) return {q, ctx.in(1), ctx.in(2)};
  const ValueId k = projection(ctx.in(1));
  return {q, k, projection(ctx.in(2))};
}

void multi_head_attention(NodeContext& ctx) {
  refuse_input(ctx, 8, "past_sequence_length");
  refuse_input(ctx, 9, "cache_indirection");
  if (ctx.wants(3)) ctx.unsupported("its output qk is not supported");
  Projections x = standalone_operands(ctx, ctx.attr_int("num_heads"));
  const int64_t past = ctx.has(6) ? ctx.shape(6).at(2) : 0;
  const std::optional<InputExtent> earlier = ctx.has(6) ? std::optional(InputExtent{6, 2}) : std::nullopt;
  const size_t keys = ctx.has(1) ? 1 : 0;
  for (const size_t scores : {4, 5}) expect_keys(ctx, scores, earlier, {keys, ctx.rank(keys) == 4 ? 2U : 1U});
  if (ctx.has(6) && ctx.has(7)) expect_extent(ctx, {7, 2}, {{6, 2}});
  if (ctx.has(6)) x.k = with_past(ctx.b, ctx.in(6), x.k);
  if (ctx.has(7)) x.v = with_past(ctx.b, ctx.in(7), x.v);
  ctx.set(0, masked_attention(ctx, x, past, 4, 5));
  ctx.set(1, x.k);
  ctx.set(2, x.v);
}

// [B, S, 1, half] of a table's rows at these positions [B, S].
ValueId angles_at(ir::Builder& b, ValueId table, ValueId positions) {
  return unsqueeze(b, b.gather(table, positions, 0), {2});
}

// Positions, of which one number counts for the first element of every sequence.
ValueId positions_of(NodeContext& ctx, size_t input, int64_t length) {
  ir::Builder& b = ctx.b;
  const ValueId given = b.cast(ctx.in(input), DType::kI64);
  if (element_count(ctx.shape(input)) != 1) return given;
  return b.add(b.reshape(given, {1, 1}), b.iota(DType::kI64, {1, length}, 1));
}

void microsoft_rotary_embedding(NodeContext& ctx) {
  ir::Builder& b = ctx.b;
  refuse_attribute(ctx, "is_packed_batching");
  if (ctx.attr_float("scale", 1) != 1) ctx.unsupported("a scale is not supported");
  const Shape shape = ctx.shape(0);
  int64_t rotated = ctx.attr_int("rotary_embedding_dim", 0);
  const int64_t head = rotated > 0 ? 0 : 2 * ctx.shape(2).at(1);
  if (rotated == 0) rotated = head;
  ValueId x;
  if (shape.size() == 4) {
    x = b.transpose(ctx.in(0), {0, 2, 1, 3});
  } else {
    const int64_t heads = ctx.attr_int("num_heads", 0);
    if (heads == 0 && head == 0) ctx.invalid("num_heads is required beside rotary_embedding_dim");
    x = with_heads(ctx, ctx.in(0), heads != 0 ? heads : shape.back() / head);
  }
  if (rotated < 0 || rotated % 2 != 0 || rotated > b.shape(x)[3]) ctx.invalid("the angles do not fit the head size");
  const ValueId at = positions_of(ctx, 1, b.shape(x)[1]);
  const ValueId y = rotate(b, x, angles_at(b, ctx.in(2), at), angles_at(b, ctx.in(3), at), rotated,
                           ctx.attr_int("interleaved", 0) != 0);
  ctx.set(0, shape.size() == 4 ? b.transpose(y, {0, 2, 1, 3}) : b.reshape(y, shape));
}

// ---- GroupQueryAttention: sequences of their own lengths in buffers of one length.

struct Cache {
  int64_t queries, length;  // positions: new ones, of the buffers after this step
  bool starts;              // there are no keys from before, in any sequence
  ValueId past;             // i64[B, 1, 1, 1]: how many keys each sequence has from before
};

// The longest sequence's length is data where the model says how long the buffers are; else it has to be known, because
// the buffers grow to it.
Cache cache_of(NodeContext& ctx, int64_t batch, int64_t queries) {
  ir::Builder& b = ctx.b;
  const int64_t room = ctx.has(3) ? ctx.shape(3).at(2) : 0;
  const Shape each = {batch, 1, 1, 1};
  const ValueId lengths = b.reshape(b.cast(ctx.in(5), DType::kI64), each);
  const ValueId none = b.full(DType::kI64, each, 0);
  const ValueId before = b.binary(Op::kAdd, lengths, static_cast<double>(1 - queries));
  const std::optional<int64_t> declared = ctx.declared_extent(1, 2);
  if (room > 0 && declared.value_or(0) >= room && !ctx.try_constant(6)) {
    const ValueId total = b.broadcast_to(b.reshape(b.cast(ctx.in(6), DType::kI64), {1, 1, 1, 1}), each);
    const ValueId starts = b.binary(Op::kEq, total, static_cast<double>(queries));
    return {queries, *declared, false, b.select(starts, none, before)};
  }
  const int64_t total = ctx.constant_int(6);
  const bool starts = queries == total;
  return {queries, std::max(room, std::max(total, queries)), starts, starts ? none : before};
}

// A buffer [B, G, length, D] after the new rows were written behind the earlier ones. If the length stays, it is the
// earlier buffer with some rows replaced, which a run may store in place.
ValueId updated(NodeContext& ctx, const Cache& cache, size_t past_input, ValueId fresh) {
  ir::Builder& b = ctx.b;
  const Shape shape = b.shape(fresh);
  const int64_t room = ctx.has(past_input) ? ctx.shape(past_input).at(2) : 0;
  if (cache.starts) {
    if (room <= cache.queries) return fresh;
    const std::array parts = {fresh, b.slice_dim(ctx.in(past_input), 2, cache.queries, room)};
    return b.concat(parts, 2);
  }
  if (room == 0) ctx.invalid("total_sequence_length counts earlier keys, of which there are none");
  if (room == cache.length) {
    const Shape rows = {shape[0], 1, cache.queries, 1};
    const ValueId row = b.add(b.broadcast_to(cache.past, rows), b.iota(DType::kI64, rows, 2));
    return b.emit(Op::kScatterElements, {ctx.in(past_input), row, fresh},
                  {{"dim", int64_t{2}}, {"reduction", std::string("none")}, {"drop", int64_t{1}}});
  }
  const std::array parts = {ctx.in(past_input), fresh};
  const ValueId both = b.concat(parts, 2);
  const ValueId at = b.broadcast_to(b.iota(DType::kI64, {1, 1, cache.length, 1}, 2), {shape[0], 1, cache.length, 1});
  const ValueId offset = b.sub(at, b.broadcast_to(cache.past, b.shape(at)));
  const ValueId old = b.binary(Op::kMin, at, static_cast<double>(room - 1));
  const ValueId added = b.binary(Op::kAdd, offset, static_cast<double>(room));
  const ValueId is_new =
      b.binary(Op::kAnd, b.binary(Op::kGe, offset, 0.0), b.binary(Op::kLt, offset, static_cast<double>(cache.queries)));
  const ValueId row = b.select(is_new, added, old);
  return b.emit(Op::kGatherElements, {both, b.broadcast_to(row, {shape[0], shape[1], cache.length, shape[3]})},
                {{"dim", int64_t{2}}});
}

// x [B, S, heads, D], normalised head by head where the input has weights for that.
ValueId head_norm(NodeContext& ctx, ValueId x, size_t weight, const char* epsilon) {
  if (!ctx.has(weight)) return x;
  ir::Builder& b = ctx.b;
  const DType type = b.dtype(x), wide = wide_dtype(type);
  const ValueId w = b.cast(x, wide);
  const double e = ctx.attr_float(epsilon, ctx.attr_float("qk_norm_epsilon", 1e-6f));
  const ValueId scale = b.unary(Op::kRsqrt, b.binary(Op::kAdd, b.mean(square(b, w), {3}, true), e));
  return b.cast(b.mul(b.mul(w, scale), b.cast(ctx.in(weight), wide)), type);
}

// Softmax over the last dimension with one more score per head, which gets a weight but no value.
ValueId softmax_with_sink(NodeContext& ctx, ValueId scores) {
  ir::Builder& b = ctx.b;
  const bool smooth = ctx.attr_int("smooth_softmax", 0) > 0;
  if (!ctx.has(11) && !smooth) return b.softmax(scores, {3});
  Shape column = b.shape(scores);
  const int64_t keys = std::exchange(column[3], 1);
  const DType type = b.dtype(scores);
  const ValueId sink = ctx.has(11) ? b.cast(b.reshape(ctx.in(11), {1, column[1], 1, 1}), type) : b.scalar(type, 0);
  const std::array parts = {scores, b.broadcast_to(sink, column)};
  return b.slice_dim(b.softmax(b.concat(parts, 3), {3}), 3, 0, keys);
}

// bool[B, 1, S, keys]: causal, within a window where there is one.
ValueId visible_positions(NodeContext& ctx, const Cache& cache, int64_t keys) {
  ir::Builder& b = ctx.b;
  const ValueId key = b.iota(DType::kI64, {1, 1, 1, keys}, 3);
  if (ctx.attr_int("causal", 1) == 0) {
    return b.binary(Op::kLt, key, b.binary(Op::kAdd, cache.past, static_cast<double>(cache.queries)));
  }
  const ValueId query = b.add(cache.past, b.iota(DType::kI64, {1, 1, cache.queries, 1}, 2));
  const ValueId seen = b.binary(Op::kLe, key, query);
  const int64_t window = ctx.attr_int("local_window_size", -1);
  if (window < 0) return seen;
  return b.binary(Op::kAnd, seen, b.binary(Op::kGt, b.binary(Op::kAdd, key, static_cast<double>(window)), query));
}

void check_group_query(NodeContext& ctx) {
  refuse_attribute(ctx, "kv_cache_bit_width");
  refuse_attribute(ctx, "sliding_window_cache");
  refuse_attribute(ctx, "qk_output");
  refuse_input(ctx, 12, "k_scale");
  refuse_input(ctx, 13, "v_scale");
  refuse_input(ctx, 16, "query_seqlens");
  if (ctx.rank(0) != 3) ctx.invalid("a query of rank 3 expected");
  if (ctx.has(1) != ctx.has(2)) ctx.invalid("key and value go together");
}

// Queries, keys and values as [B, S, heads, D], normalised and rotated.
Projections group_query_operands(NodeContext& ctx, int64_t heads, int64_t groups, const Cache& cache) {
  ir::Builder& b = ctx.b;
  const ValueId whole = ctx.in(0);
  Projections x;
  if (ctx.has(1)) {
    x = {with_heads(ctx, whole, heads), with_heads(ctx, ctx.in(1), groups), with_heads(ctx, ctx.in(2), groups)};
  } else {
    const ValueId all = with_heads(ctx, whole, heads + 2 * groups);
    x = {b.slice_dim(all, 2, 0, heads), b.slice_dim(all, 2, heads, heads + groups),
         b.slice_dim(all, 2, heads + groups, heads + 2 * groups)};
  }
  x.q = head_norm(ctx, x.q, 14, "q_norm_epsilon");
  x.k = head_norm(ctx, x.k, 15, "k_norm_epsilon");
  if (ctx.attr_int("do_rotary", 0) == 0) return x;
  const ValueId first = b.reshape(cache.past, {b.shape(cache.past)[0], 1});
  const ValueId at =
      ctx.has(9) ? positions_of(ctx, 9, cache.queries) : b.add(first, b.iota(DType::kI64, {1, cache.queries}, 1));
  const ValueId cosine = angles_at(b, ctx.in(7), at), sine = angles_at(b, ctx.in(8), at);
  const int64_t rotated = 2 * b.shape(cosine)[3];
  if (rotated > b.shape(x.q)[3]) ctx.invalid("the angles do not fit the head size");
  const bool interleaved = ctx.attr_int("rotary_interleaved", 0) != 0;
  x.q = rotate(b, x.q, cosine, sine, rotated, interleaved);
  x.k = rotate(b, x.k, cosine, sine, rotated, interleaved);
  return x;
}

void group_query_attention(NodeContext& ctx) {
  ir::Builder& b = ctx.b;
  check_group_query(ctx);
  if (ctx.has(3) && ctx.has(4)) expect_extent(ctx, {4, 2}, {{3, 2}});
  if (ctx.has(3)) expect_keys(ctx, 10, std::nullopt, {3, 2});
  const int64_t heads = ctx.attr_int("num_heads"), groups = ctx.attr_int("kv_num_heads");
  if (groups < 1 || heads % groups != 0) ctx.invalid("kv_num_heads does not divide num_heads");
  const Cache cache = cache_of(ctx, ctx.shape(0)[0], ctx.shape(0)[1]);
  const Projections x = group_query_operands(ctx, heads, groups, cache);
  const ValueId q = b.transpose(x.q, {0, 2, 1, 3});
  const ValueId fresh_k = b.transpose(x.k, {0, 2, 1, 3}), fresh_v = b.transpose(x.v, {0, 2, 1, 3});
  const ValueId present_k = updated(ctx, cache, 3, fresh_k), present_v = updated(ctx, cache, 4, fresh_v);
  // Rows behind those of a first step are never seen.
  const ValueId k = cache.starts ? fresh_k : present_k, v = cache.starts ? fresh_v : present_v;
  const double given = ctx.attr_float("scale", 0);
  const double scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(b.shape(q)[3]));
  const DType type = b.dtype(q), wide = wide_dtype(type);
  ValueId scores = soft_capped(b, b.cast(scaled_scores(b, q, k, scale), wide), ctx.attr_float("softcap", 0));
  if (ctx.has(10)) {
    const Shape bias = ctx.shape(10);
    Ints high(bias.size(), 0);
    high.back() = std::max<int64_t>(0, b.shape(k)[2] - bias.back());
    scores = b.add(scores, b.cast(b.pad(ctx.in(10), b.scalar(ctx.dtype(10), 0), Ints(bias.size(), 0), high), wide));
  }
  scores = b.select(visible_positions(ctx, cache, b.shape(k)[2]), scores,
                    b.scalar(wide, std::numeric_limits<float>::lowest()));
  const ValueId weights = b.cast(softmax_with_sink(ctx, scores), type);
  ctx.set(0, without_heads(b, grouped_dot(b, weights, v, 2)));
  ctx.set(1, present_k);
  ctx.set(2, present_v);
}

// The embeddings of words, positions and segments, added and normalised.
void embed_layer_norm(NodeContext& ctx) {
  ir::Builder& b = ctx.b;
  const Shape ids = ctx.shape(0);
  if (ids.size() != 2) ctx.invalid("word identifiers of rank 2 expected");
  const ValueId positions = ctx.has(8) ? ctx.in(8) : b.iota(DType::kI64, {1, ids[1]}, 1);
  ValueId sum = b.add(b.gather(ctx.in(2), ctx.in(0), 0), b.gather(ctx.in(3), positions, 0));
  if (ctx.has(1) && ctx.has(4)) sum = b.add(sum, b.gather(ctx.in(4), ctx.in(1), 0));
  const DType type = b.dtype(sum), wide = wide_dtype(type);
  const ValueId y = normalize(b, b.cast(sum, wide), {2}, ctx.attr_float("epsilon", 1e-12f)).value;
  ctx.set(0, b.cast(b.add(b.mul(y, b.cast(ctx.in(5), wide)), b.cast(ctx.in(6), wide)), type));
  // How many words each sequence has.
  ctx.set(1, ctx.has(7) ? b.cast(b.reduce("sum", b.cast(ctx.in(7), DType::kI32), {1}), DType::kI32)
                        : b.full(DType::kI32, {ids[0]}, 0));
  ctx.set(2, sum);
}

}  // namespace

std::span<const OpHandler> microsoft_attention_ops() {
  static constexpr std::array kTable = {
      OpHandler{kMicrosoft, "Attention", 1, kAnyVersion, microsoft_attention},
      OpHandler{kMicrosoft, "EmbedLayerNormalization", 1, kAnyVersion, embed_layer_norm},
      OpHandler{kMicrosoft, "GroupQueryAttention", 1, kAnyVersion, group_query_attention},
      OpHandler{kMicrosoft, "MultiHeadAttention", 1, kAnyVersion, multi_head_attention},
      OpHandler{kMicrosoft, "QAttention", 1, kAnyVersion, quantized_attention},
      OpHandler{kMicrosoft, "RotaryEmbedding", 1, kAnyVersion, microsoft_rotary_embedding},
  };
  return kTable;
}

}  // namespace heddle::onnx
