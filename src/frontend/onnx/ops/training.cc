#include <array>

#include "frontend/onnx/node_context.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {
namespace {

using ir::Builder;
using ir::Op;
using ir::ValueId;

// Inputs are R, T and then `kinds` lists of equally many tensors (X_1, X_2, ..., G_1, G_2, ...); outputs are the lists
// without the gradients.
struct Optimiser {
  NodeContext& ctx;
  size_t kinds;
  size_t count;

  Optimiser(NodeContext& context, size_t kind_count) : ctx(context), kinds(kind_count), count(0) {
    if (ctx.input_count() < 2 + kinds || (ctx.input_count() - 2) % kinds != 0) {
      ctx.invalid(
          fmt::format("R, T and {} tensors for each variable expected, not {} inputs", kinds, ctx.input_count()));
    }
    count = (ctx.input_count() - 2) / kinds;
  }
  ValueId tensor(size_t kind, size_t i) const { return ctx.in(2 + kind * count + i); }
  void result(size_t kind, size_t i, ValueId v) {
    if (ctx.wants(kind * count + i)) ctx.set(kind * count + i, v);
  }
  ValueId rate(ValueId like) const { return ctx.b.cast(ctx.b.reshape(ctx.in(0), {}), ctx.b.dtype(like)); }
  ValueId updates(ValueId like) const { return ctx.b.cast(ctx.b.reshape(ctx.in(1), {}), ctx.b.dtype(like)); }
  ValueId regularised(size_t i) const {
    Builder& b = ctx.b;
    const ValueId x = tensor(0, i);
    return b.add(b.binary(Op::kMul, x, ctx.attr_float("norm_coefficient", 0)), tensor(1, i));
  }
};

void lower_adagrad(NodeContext& ctx) {
  Optimiser o(ctx, 3);
  Builder& b = ctx.b;
  for (size_t i = 0; i < o.count; ++i) {
    const ValueId x = o.tensor(0, i), gradient = o.regularised(i);
    const ValueId decay = b.binary(Op::kAdd, b.binary(Op::kMul, o.updates(x), ctx.attr_float("decay_factor", 0)), 1.0);
    const ValueId history = b.add(o.tensor(2, i), b.mul(gradient, gradient));
    const ValueId adaptive = b.binary(Op::kAdd, b.unary(Op::kSqrt, history), ctx.attr_float("epsilon", 1e-6));
    o.result(0, i, b.sub(x, b.div(b.mul(b.div(o.rate(x), decay), gradient), adaptive)));
    o.result(1, i, history);
  }
}

void lower_adam(NodeContext& ctx) {
  Optimiser o(ctx, 4);
  Builder& b = ctx.b;
  const double alpha = ctx.attr_float("alpha", 0.9), beta = ctx.attr_float("beta", 0.999);
  const auto blend = [&](ValueId old, ValueId now, double keep) {
    return b.add(b.binary(Op::kMul, old, keep), b.binary(Op::kMul, now, 1 - keep));
  };
  for (size_t i = 0; i < o.count; ++i) {
    const ValueId x = o.tensor(0, i), gradient = o.regularised(i), t = o.updates(x), rate = o.rate(x);
    const ValueId mean = blend(o.tensor(2, i), gradient, alpha);
    const ValueId square = blend(o.tensor(3, i), b.mul(gradient, gradient), beta);
    const auto complement = [&](double base) {
      const ValueId one = b.scalar(b.dtype(x), 1);
      return b.sub(one, b.binary(Op::kPow, b.scalar(b.dtype(x), base), t));
    };
    const ValueId corrected = b.div(b.mul(rate, b.unary(Op::kSqrt, complement(beta))), complement(alpha));
    const ValueId step = b.select(b.binary(Op::kGt, t, 0.0), corrected, rate);
    const ValueId root = b.binary(Op::kAdd, b.unary(Op::kSqrt, square), ctx.attr_float("epsilon", 1e-6));
    const ValueId next = b.sub(x, b.div(b.mul(step, mean), root));
    o.result(0, i, b.binary(Op::kMul, next, 1 - ctx.attr_float("norm_coefficient_post", 0)));
    o.result(1, i, mean);
    o.result(2, i, square);
  }
}

void lower_momentum(NodeContext& ctx) {
  Optimiser o(ctx, 3);
  Builder& b = ctx.b;
  const std::string mode = ctx.attr_string("mode");
  if (mode != "standard" && mode != "nesterov") ctx.invalid("mode \"" + mode + "\" is neither standard nor nesterov");
  const double alpha = ctx.attr_float("alpha");
  for (size_t i = 0; i < o.count; ++i) {
    const ValueId x = o.tensor(0, i), gradient = o.regularised(i);
    const ValueId beta = b.select(b.binary(Op::kGt, o.updates(x), 0.0), b.scalar(b.dtype(x), ctx.attr_float("beta")),
                                  b.scalar(b.dtype(x), 1));
    const ValueId momentum = b.add(b.binary(Op::kMul, o.tensor(2, i), alpha), b.mul(gradient, beta));
    const ValueId direction = mode == "nesterov" ? b.add(gradient, b.binary(Op::kMul, momentum, alpha)) : momentum;
    o.result(0, i, b.sub(x, b.mul(direction, o.rate(x))));
    o.result(1, i, momentum);
  }
}

}  // namespace

std::span<const OpHandler> training_ops() {
  static constexpr std::array kHandlers = {
      OpHandler{"ai.onnx.preview.training", "Adagrad", 1, kAnyVersion, lower_adagrad},
      OpHandler{"ai.onnx.preview.training", "Adam", 1, kAnyVersion, lower_adam},
      OpHandler{"ai.onnx.preview.training", "Momentum", 1, kAnyVersion, lower_momentum},
  };
  return kHandlers;
}

}  // namespace heddle::onnx
