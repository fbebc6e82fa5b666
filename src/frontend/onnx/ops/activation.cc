#include <array>

#include "frontend/onnx/lowering/op_helpers.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {
namespace {

void relu(NodeContext& ctx) {
  ctx.set(0, ctx.b.binary(Op::kMax, ctx.in(0), 0.0));
}

void sigmoid(NodeContext& ctx) {
  ctx.set(0, ctx.b.sigmoid(ctx.in(0)));
}

// x where it is not negative, else `below`.
ValueId positive_or(NodeContext& ctx, ValueId x, ValueId below) {
  return ctx.b.select(ctx.b.binary(Op::kLt, x, 0.0), below, x);
}

void leaky_relu(NodeContext& ctx) {
  const ValueId x = ctx.in(0);
  ctx.set(0, positive_or(ctx, x, ctx.b.binary(Op::kMul, x, ctx.attr_float("alpha", 0.01f))));
}

void prelu(NodeContext& ctx) {
  const ValueId x = ctx.in(0);
  const Shape shape = ctx.shape(0);
  ValueId slope = ctx.in(1);
  // Before opset 7 a vector holds one slope per channel.
  const bool per_channel_slope = ctx.version() < 7 && ctx.rank(1) == 1 && element_count(ctx.shape(1)) != 1;
  if (per_channel_slope && shape.size() > 1) slope = per_channel(ctx.b, slope, ctx.rank(0));
  const ValueId below = ctx.b.mul(x, slope);
  if (ctx.b.shape(below) != shape) ctx.invalid("the slope does not broadcast to the input's shape");
  ctx.set(0, positive_or(ctx, x, below));
}

void elu(NodeContext& ctx) {
  const ValueId x = ctx.in(0);
  const ValueId below = ctx.b.binary(Op::kMul, ctx.b.unary(Op::kExpm1, x), ctx.attr_float("alpha", 1));
  ctx.set(0, positive_or(ctx, x, below));
}

void selu(NodeContext& ctx) {
  const ValueId x = ctx.in(0);
  const bool rounded = ctx.version() < 6;  // the defaults
  const double alpha = ctx.attr_float("alpha", rounded ? 1.6732f : 1.67326319217681884765625);
  const double gamma = ctx.attr_float("gamma", rounded ? 1.0507f : 1.05070102214813232421875);
  const ValueId below = ctx.b.binary(Op::kMul, ctx.b.unary(Op::kExpm1, x), alpha);
  ctx.set(0, ctx.b.binary(Op::kMul, positive_or(ctx, x, below), gamma));
}

void celu(NodeContext& ctx) {
  const ValueId x = ctx.in(0);
  const double alpha = ctx.attr_float("alpha", 1);
  const ValueId scaled = ctx.b.binary(Op::kDiv, x, alpha);
  const ValueId below = ctx.b.binary(Op::kMul, ctx.b.unary(Op::kExpm1, scaled), alpha);
  ctx.set(0, positive_or(ctx, x, below));
}

void softplus_op(NodeContext& ctx) {
  ctx.set(0, softplus(ctx.b, ctx.in(0)));
}

void softsign(NodeContext& ctx) {
  ctx.set(0, ctx.b.unary(Op::kSoftsign, ctx.in(0)));
}

// alpha x + beta, between 0 and 1.
ValueId clamped_line(NodeContext& ctx, ValueId x, double alpha, double beta) {
  const ValueId line = ctx.b.binary(Op::kAdd, ctx.b.binary(Op::kMul, x, alpha), beta);
  return ctx.b.binary(Op::kMax, ctx.b.binary(Op::kMin, line, 1.0), 0.0);
}

void hard_sigmoid(NodeContext& ctx) {
  ctx.set(0, clamped_line(ctx, ctx.in(0), ctx.attr_float("alpha", 0.2f), ctx.attr_float("beta", 0.5f)));
}

void hard_swish(NodeContext& ctx) {
  ctx.set(0, ctx.b.mul(ctx.in(0), clamped_line(ctx, ctx.in(0), 1.0 / 6, 0.5)));
}

void mish(NodeContext& ctx) {
  ctx.set(0, ctx.b.mul(ctx.in(0), ctx.b.unary(Op::kTanh, softplus(ctx.b, ctx.in(0)))));
}

void gelu_op(NodeContext& ctx) {
  const std::string form = ctx.attr_string("approximate", "none");
  if (form != "none" && form != "tanh") ctx.invalid("approximate must be 'none' or 'tanh', not '" + form + "'");
  ctx.set(0, gelu(ctx.b, ctx.in(0), form == "tanh"));
}

void swish(NodeContext& ctx) {
  const ValueId x = ctx.in(0);
  const double alpha = ctx.attr_float("alpha", 1);
  const ValueId scaled = alpha == 1 ? x : ctx.b.binary(Op::kMul, x, alpha);
  ctx.set(0, ctx.b.mul(x, ctx.b.sigmoid(scaled)));
}

void thresholded_relu(NodeContext& ctx) {
  const ValueId x = ctx.in(0);
  const ValueId above = ctx.b.binary(Op::kGt, x, ctx.attr_float("alpha", 1));
  ctx.set(0, ctx.b.select(above, x, ctx.b.scalar(ctx.dtype(0), 0)));
}

// Integer bounds round towards zero, which leaves both comparisons as they are.
void shrink(NodeContext& ctx) {
  const ValueId x = ctx.in(0);
  const double lambda = ctx.attr_float("lambd", 0.5), bias = ctx.attr_float("bias", 0);
  const ValueId zero = ctx.b.scalar(ctx.dtype(0), 0);
  const ValueId high = ctx.b.select(ctx.b.binary(Op::kGt, x, lambda), ctx.b.binary(Op::kSub, x, bias), zero);
  ctx.set(0, ctx.b.select(ctx.b.binary(Op::kLt, x, -lambda), ctx.b.binary(Op::kAdd, x, bias), high));
}

}  // namespace

std::span<const OpHandler> activation_ops() {
  static constexpr std::array kTable = {
      OpHandler{"", "Celu", 12, kAnyVersion, celu},
      OpHandler{"", "Elu", 1, kAnyVersion, elu},
      OpHandler{"", "Gelu", 20, kAnyVersion, gelu_op},
      OpHandler{"", "HardSigmoid", 1, kAnyVersion, hard_sigmoid},
      OpHandler{"", "HardSwish", 14, kAnyVersion, hard_swish},
      OpHandler{"", "LeakyRelu", 1, kAnyVersion, leaky_relu},
      OpHandler{"", "Mish", 18, kAnyVersion, mish},
      OpHandler{"", "PRelu", 1, kAnyVersion, prelu},
      OpHandler{"", "Relu", 1, kAnyVersion, relu},
      OpHandler{"", "Selu", 1, kAnyVersion, selu},
      OpHandler{"", "Shrink", 9, kAnyVersion, shrink},
      OpHandler{"", "Sigmoid", 1, kAnyVersion, sigmoid},
      OpHandler{"", "Softplus", 1, kAnyVersion, softplus_op},
      OpHandler{"", "Softsign", 1, kAnyVersion, softsign},
      OpHandler{"", "Swish", 24, kAnyVersion, swish},
      OpHandler{"", "ThresholdedRelu", 10, kAnyVersion, thresholded_relu},
  };
  return kTable;
}

}  // namespace heddle::onnx
