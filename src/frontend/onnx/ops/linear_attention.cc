#include <array>
#include <cmath>

#include "frontend/onnx/lowering/step_loop.h"
#include "frontend/onnx/node_context.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {
namespace {

using ir::Builder;
using ir::Ints;
using ir::Op;
using ir::ValueId;

// The operands of the recurrence with time first: q [T,B,H,G,K] with G query heads per key head, k [T,B,H,K],
// v [T,B,H,V], decay [T,B,H,K or 1], beta [T,B,H,1].
struct Recurrent {
  ValueId q = 0, k = 0, v = 0;
  std::optional<ValueId> decay, beta;
  int64_t steps = 0, batch = 0, heads = 0, group = 0, keys = 0, values = 0;
};

// [B,T,heads*n] -> [T,B,heads,n] in the dtype of the computation.
ValueId unpack(const NodeContext& ctx, size_t input, int64_t heads, DType dtype) {
  Builder& b = ctx.b;
  const Shape shape = ctx.shape(input);
  if (shape.size() != 3 || heads < 1 || shape[2] % heads != 0) {
    ctx.invalid(fmt::format("input {} is {}, which does not pack {} heads", input, to_string(shape), heads));
  }
  const ValueId x = b.cast(ctx.in(input), dtype);
  return b.transpose(b.reshape(x, {shape[0], shape[1], heads, shape[2] / heads}), {1, 0, 2, 3});
}

Recurrent read_recurrent(const NodeContext& ctx, DType dtype, bool gated, bool delta) {
  Builder& b = ctx.b;
  Recurrent r;
  const int64_t query_heads = ctx.attr_int("q_num_heads");
  r.heads = ctx.attr_int("kv_num_heads");
  if (r.heads < 1 || query_heads < 1 || query_heads % r.heads != 0) {
    ctx.invalid(fmt::format("{} query heads for {} key heads", query_heads, r.heads));
  }
  r.group = query_heads / r.heads;
  r.k = unpack(ctx, 1, r.heads, dtype);
  r.v = unpack(ctx, 2, r.heads, dtype);
  const Shape q = b.shape(unpack(ctx, 0, query_heads, dtype)), k = b.shape(r.k), v = b.shape(r.v);
  r.steps = q[0];
  r.batch = q[1];
  r.keys = q[3];
  r.values = v[3];
  if (k != Shape{r.steps, r.batch, r.heads, r.keys} || v != Shape{r.steps, r.batch, r.heads, r.values}) {
    ctx.invalid("query, key and value do not fit each other");
  }
  r.q = b.reshape(unpack(ctx, 0, query_heads, dtype), {r.steps, r.batch, r.heads, r.group, r.keys});
  const auto require_input = [&](size_t input, const char* name) {
    if (!ctx.has(input)) ctx.invalid(fmt::format("this update rule needs {}", name));
    if (ctx.rank(input) != 3 || ctx.shape(input)[0] != r.batch || ctx.shape(input)[1] != r.steps) {
      ctx.invalid(fmt::format("{} is {}", name, to_string(ctx.shape(input))));
    }
  };
  if (gated) {
    require_input(4, "decay");
    r.decay = unpack(ctx, 4, r.heads, dtype);
  }
  if (delta) {
    require_input(5, "beta");
    r.beta = unpack(ctx, 5, ctx.shape(5)[2] == 1 ? 1 : r.heads, dtype);
  }
  return r;
}

void lower_linear_attention(NodeContext& ctx) {
  Builder& b = ctx.b;
  const std::string rule = ctx.attr_string("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") ctx.invalid("update_rule \"" + rule + "\" is not known");
  const DType stored = ctx.dtype(0);
  const DType dtype = stored == DType::kF64 ? stored : DType::kF32;
  const Recurrent r = read_recurrent(ctx, dtype, gated, delta);
  double scale = ctx.attr_float("scale", 0);
  if (scale == 0) scale = r.keys > 0 ? 1 / std::sqrt(static_cast<double>(r.keys)) : 1;
  const Shape state_shape = {r.batch, r.heads, r.keys, r.values};
  if (ctx.has(3) && ctx.shape(3) != state_shape) {
    ctx.invalid(fmt::format("past_state is {}, {} expected", to_string(ctx.shape(3)), to_string(state_shape)));
  }

  StepLoop loop(ctx);
  Builder& in = loop.body();
  const ValueId initial = ctx.has(3) ? b.cast(ctx.in(3), dtype) : b.full(dtype, state_shape, 0);
  ValueId state = loop.state(initial);
  const ValueId q = loop.entry("query", r.q), k = loop.entry("key", r.k);
  ValueId v = loop.entry("value", r.v);
  if (gated) {
    const ValueId decay = in.unary(Op::kExp, loop.entry("decay", *r.decay));
    Shape column = in.shape(decay);
    column.push_back(1);
    state = in.mul(state, in.reshape(decay, column));
  }
  const auto batched = [&](ValueId lhs, ValueId rhs, int64_t lhs_dim, int64_t rhs_dim) {
    return in.emit(Op::kDot, {lhs, rhs},
                   {{"lhs_batch", Ints{0, 1}},
                    {"rhs_batch", Ints{0, 1}},
                    {"lhs_contract", Ints{lhs_dim}},
                    {"rhs_contract", Ints{rhs_dim}}});
  };
  if (delta) v = in.mul(in.sub(v, batched(k, state, 2, 2)), loop.entry("beta", *r.beta));
  const ValueId outer =
      in.mul(in.reshape(k, {r.batch, r.heads, r.keys, 1}), in.reshape(v, {r.batch, r.heads, 1, r.values}));
  const ValueId next = in.add(state, outer);
  const ValueId y = in.binary(Op::kMul, batched(q, next, 3, 2), scale);  // [B,H,G,V]
  const auto results = loop.run(r.steps, std::array{next}, std::array{y});
  if (ctx.wants(0)) {
    const ValueId packed = b.transpose(results[1], {1, 0, 2, 3, 4});
    ctx.set(0, b.cast(b.reshape(packed, {r.batch, r.steps, r.heads * r.group * r.values}), stored));
  }
  if (ctx.wants(1)) ctx.set(1, b.cast(results[0], ctx.has(3) ? ctx.dtype(3) : stored));
}

}  // namespace

std::span<const OpHandler> linear_attention_ops() {
  static constexpr std::array kHandlers = {
      OpHandler{"", "LinearAttention", 27, kNewestOpset, lower_linear_attention},
  };
  return kHandlers;
}

}  // namespace heddle::onnx
