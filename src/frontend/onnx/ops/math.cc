#include <array>
#include <cmath>

#include "frontend/onnx/lowering/op_helpers.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {
namespace {

template <Op kOp>
void unary(NodeContext& ctx) {
  ctx.set(0, ctx.b.unary(kOp, ctx.in(0)));
}

template <Op kOp>
void binary(NodeContext& ctx) {
  const auto [lhs, rhs] = binary_operands(ctx);
  ctx.set(0, ctx.b.binary(kOp, lhs, rhs));
}

template <Op kOp>
ValueId fold_inputs(NodeContext& ctx) {
  const std::vector<ValueId> inputs = ctx.tensors();
  if (inputs.empty()) ctx.invalid("at least one input is needed");
  ValueId result = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) result = ctx.b.binary(kOp, result, inputs[i]);
  return result;
}

template <Op kOp>
void variadic(NodeContext& ctx) {
  ctx.set(0, fold_inputs<kOp>(ctx));
}

void mean(NodeContext& ctx) {
  const ValueId sum = fold_inputs<Op::kAdd>(ctx);
  ctx.set(0, ctx.b.binary(Op::kDiv, sum, static_cast<double>(ctx.input_count())));
}

void reciprocal(NodeContext& ctx) {
  const ValueId one = ctx.b.scalar(ctx.dtype(0), 1);
  ctx.set(0, ctx.b.div(one, ctx.in(0)));
}

// The result has the base's type whatever the exponent's is.
void pow(NodeContext& ctx) {
  const DType base = ctx.dtype(0), exponent = ctx.dtype(1);
  if (is_int(base) && is_float(exponent)) {
    const DType wide = DType::kF64;
    const ValueId power = ctx.b.binary(Op::kPow, ctx.b.cast(ctx.in(0), wide), ctx.b.cast(ctx.in(1), wide));
    ctx.set(0, ctx.b.cast(power, base));
    return;
  }
  const auto [lhs, rhs] = binary_operands(ctx);
  ctx.set(0, ctx.b.binary(Op::kPow, lhs, ctx.b.cast(rhs, base)));
}

void mod(NodeContext& ctx) {
  const Op op = ctx.attr_int("fmod", 0) != 0 ? Op::kRem : Op::kMod;
  ctx.set(0, ctx.b.binary(op, ctx.in(0), ctx.in(1)));
}

void clip(NodeContext& ctx) {
  ValueId x = ctx.in(0);
  if (ctx.version() < 11) {
    if (ctx.has_attr("min")) x = ctx.b.binary(Op::kMax, x, ctx.attr_float("min"));
    if (ctx.has_attr("max")) x = ctx.b.binary(Op::kMin, x, ctx.attr_float("max"));
  } else {
    const auto scalar = [&](size_t i) {
      if (element_count(ctx.shape(i)) != 1) ctx.invalid("the bounds must be scalars");
      return ctx.b.reshape(ctx.in(i), {});
    };
    if (ctx.has(1)) x = ctx.b.max(x, scalar(1));
    if (ctx.has(2)) x = ctx.b.min(x, scalar(2));
  }
  ctx.set(0, x);
}

// Sums or products along an axis given as an input.
template <bool kProduct>
void cumulative(NodeContext& ctx) {
  const int64_t axis = ctx.axis(ctx.constant_int(1), ctx.rank(0));
  ctx.set(0, ctx.b.emit(Op::kScan, {ctx.in(0)},
                        {{"kind", kProduct ? "prod" : "sum"},
                         {"dim", axis},
                         {"exclusive", ctx.attr_int("exclusive", 0)},
                         {"reverse", ctx.attr_int("reverse", 0)}}));
}

}  // namespace

std::span<const OpHandler> math_ops() {
  static constexpr std::array kTable = {
      OpHandler{"", "Abs", 1, kAnyVersion, unary<Op::kAbs>},
      OpHandler{"", "Acos", 7, kAnyVersion, unary<Op::kAcos>},
      OpHandler{"", "Acosh", 9, kAnyVersion, unary<Op::kAcosh>},
      OpHandler{"", "Add", 1, kAnyVersion, binary<Op::kAdd>},
      OpHandler{"", "Asin", 7, kAnyVersion, unary<Op::kAsin>},
      OpHandler{"", "Asinh", 9, kAnyVersion, unary<Op::kAsinh>},
      OpHandler{"", "Atan", 7, kAnyVersion, unary<Op::kAtan>},
      OpHandler{"", "Atanh", 9, kAnyVersion, unary<Op::kAtanh>},
      OpHandler{"", "Ceil", 1, kAnyVersion, unary<Op::kCeil>},
      OpHandler{"", "Clip", 1, kAnyVersion, clip},
      OpHandler{"", "Cos", 7, kAnyVersion, unary<Op::kCos>},
      OpHandler{"", "Cosh", 9, kAnyVersion, unary<Op::kCosh>},
      OpHandler{"", "CumProd", 26, kAnyVersion, cumulative<true>},
      OpHandler{"", "CumSum", 11, kAnyVersion, cumulative<false>},
      OpHandler{"", "Div", 1, kAnyVersion, binary<Op::kDiv>},
      OpHandler{"", "Erf", 9, kAnyVersion, unary<Op::kErf>},
      OpHandler{"", "Exp", 1, kAnyVersion, unary<Op::kExp>},
      OpHandler{"", "Floor", 1, kAnyVersion, unary<Op::kFloor>},
      OpHandler{"", "Log", 1, kAnyVersion, unary<Op::kLog>},
      OpHandler{"", "Max", 1, kAnyVersion, variadic<Op::kMax>},
      OpHandler{"", "Mean", 1, kAnyVersion, mean},
      OpHandler{"", "Min", 1, kAnyVersion, variadic<Op::kMin>},
      OpHandler{"", "Mod", 10, kAnyVersion, mod},
      OpHandler{"", "Mul", 1, kAnyVersion, binary<Op::kMul>},
      OpHandler{"", "Neg", 1, kAnyVersion, unary<Op::kNeg>},
      OpHandler{"", "Pow", 1, kAnyVersion, pow},
      OpHandler{"", "Reciprocal", 1, kAnyVersion, reciprocal},
      OpHandler{"", "Round", 11, kAnyVersion, unary<Op::kRound>},
      OpHandler{"", "Sign", 9, kAnyVersion, unary<Op::kSign>},
      OpHandler{"", "Sin", 7, kAnyVersion, unary<Op::kSin>},
      OpHandler{"", "Sinh", 9, kAnyVersion, unary<Op::kSinh>},
      OpHandler{"", "Sqrt", 1, kAnyVersion, unary<Op::kSqrt>},
      OpHandler{"", "Sub", 1, kAnyVersion, binary<Op::kSub>},
      OpHandler{"", "Sum", 1, kAnyVersion, variadic<Op::kAdd>},
      OpHandler{"", "Tan", 7, kAnyVersion, unary<Op::kTan>},
      OpHandler{"", "Tanh", 1, kAnyVersion, unary<Op::kTanh>},
  };
  return kTable;
}

}  // namespace heddle::onnx
