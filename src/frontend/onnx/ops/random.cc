#include <array>
#include <bit>

#include "frontend/onnx/lowering/op_helpers.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {
namespace {

ValueId draw(NodeContext& ctx, const char* kind, DType type, const Shape& shape) {
  int64_t seed = static_cast<int64_t>(ctx.default_seed());
  if (ctx.has_attr("seed")) seed = std::bit_cast<int32_t>(static_cast<float>(ctx.attr_float("seed")));
  return ctx.b.emit(Op::kRandom, {}, {{"kind", kind}, {"dtype", type}, {"shape", shape}, {"seed", seed}});
}

// offset + factor * draw.
void set_line(NodeContext& ctx, const char* kind, DType type, const Shape& shape, double offset, double factor) {
  for (const int64_t extent : shape) {
    if (extent < 0) ctx.invalid("the shape " + to_string(shape) + " has a negative extent");
  }
  const ValueId x = draw(ctx, kind, type, shape);
  ctx.set(0, ctx.b.binary(Op::kAdd, ctx.b.binary(Op::kMul, x, factor), offset));
}

void normal(NodeContext& ctx, DType type, const Shape& shape) {
  set_line(ctx, "normal", type, shape, ctx.attr_float("mean", 0), ctx.attr_float("scale", 1));
}

void uniform(NodeContext& ctx, DType type, const Shape& shape) {
  const double low = ctx.attr_float("low", 0), high = ctx.attr_float("high", 1);
  set_line(ctx, "uniform", type, shape, low, high - low);
}

void random_normal(NodeContext& ctx) {
  normal(ctx, ctx.attr_dtype("dtype", DType::kF32), ctx.attr_ints("shape"));
}
void random_uniform(NodeContext& ctx) {
  uniform(ctx, ctx.attr_dtype("dtype", DType::kF32), ctx.attr_ints("shape"));
}
void random_normal_like(NodeContext& ctx) {
  normal(ctx, ctx.attr_dtype("dtype", ctx.dtype(0)), Shape(ctx.shape(0)));
}
void random_uniform_like(NodeContext& ctx) {
  uniform(ctx, ctx.attr_dtype("dtype", ctx.dtype(0)), Shape(ctx.shape(0)));
}

void bernoulli(NodeContext& ctx) {
  const DType type = ctx.dtype(0);
  const ValueId x = draw(ctx, "uniform", wide_dtype(type), Shape(ctx.shape(0)));
  const ValueId hit = ctx.b.binary(Op::kLt, x, ctx.b.cast(ctx.in(0), ctx.b.dtype(x)));
  ctx.set(0, ctx.b.cast(hit, ctx.attr_dtype("dtype", type)));
}

// A uniform number falls into one step of the cumulative distribution.
void multinomial(NodeContext& ctx) {
  const Shape shape = ctx.shape(0);
  const int64_t samples = ctx.attr_int("sample_size", 1);
  if (shape.size() != 2 || samples < 0) ctx.invalid("the input must be a matrix of log-probabilities");
  const ValueId logits = ctx.b.cast(ctx.in(0), wide_dtype(ctx.dtype(0)));
  const ValueId steps =
      ctx.b.emit(Op::kScan, {ctx.b.softmax(logits, {1})},
                 {{"kind", "sum"}, {"dim", int64_t{1}}, {"exclusive", int64_t{0}}, {"reverse", int64_t{0}}});
  const ValueId x = draw(ctx, "uniform", ctx.b.dtype(steps), {shape[0], samples, 1});
  // The last step is 1 but for rounding, and is not counted.
  const ValueId inner = ctx.b.slice_dim(unsqueeze(ctx.b, steps, {1}), 2, 0, std::max<int64_t>(shape[1] - 1, 0));
  const ValueId passed = ctx.b.cast(ctx.b.binary(Op::kGe, x, inner), DType::kI64);
  ctx.set(0, ctx.b.cast(ctx.b.reduce("sum", passed, {2}), ctx.attr_dtype("dtype", DType::kI32)));
}

}  // namespace

std::span<const OpHandler> random_ops() {
  static constexpr std::array kTable = {
      OpHandler{"", "Bernoulli", 15, kAnyVersion, bernoulli},
      OpHandler{"", "Multinomial", 7, kAnyVersion, multinomial},
      OpHandler{"", "RandomNormal", 1, kAnyVersion, random_normal},
      OpHandler{"", "RandomNormalLike", 1, kAnyVersion, random_normal_like},
      OpHandler{"", "RandomUniform", 1, kAnyVersion, random_uniform},
      OpHandler{"", "RandomUniformLike", 1, kAnyVersion, random_uniform_like},
  };
  return kTable;
}

}  // namespace heddle::onnx
