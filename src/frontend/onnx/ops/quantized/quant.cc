#include <algorithm>
#include <array>

#include "frontend/onnx/lowering/quantize.h"
#include "frontend/onnx/node_context.h"
#include "frontend/onnx/op_registry.h"
#include "ir/analysis/sign.h"

namespace heddle::onnx {
namespace {

using ir::Builder;
using ir::Ints;
using ir::Op;
using ir::ValueId;

// A scale or zero point stretched to the shape of x: one number, one per entry of `axis`, or one per block of it.
ValueId stretch(const NodeContext& ctx, ValueId v, const Shape& to, int64_t axis, int64_t block) {
  Builder& b = ctx.b;
  const Shape from = b.shape(v);
  if (element_count(from) == 1 && from.size() <= 1) return b.broadcast_to(b.reshape(v, {}), to);
  const auto rank = static_cast<int64_t>(to.size());
  const int64_t at = ctx.axis(axis, rank);
  if (from.size() == 1 && block == 0) {
    if (from[0] != to[static_cast<size_t>(at)]) {
      ctx.invalid(fmt::format("{} scales for axis {} of {}", from[0], at, to_string(to)));
    }
    return b.broadcast(v, to, {at});
  }
  const auto dim = static_cast<size_t>(at);
  Shape expected = to;
  if (block > 0 && from.size() == to.size()) expected[dim] = (to[dim] + block - 1) / block;
  if (block <= 0 || from != expected) {
    ctx.invalid(fmt::format("a scale of shape {} does not fit {} with axis {} and block_size {}", to_string(from),
                            to_string(to), at, block));
  }
  // [.., blocks, ..] -> [.., blocks, block, ..] -> [.., blocks * block, ..], cut to the extent.
  Shape wide = from;
  wide.insert(wide.begin() + at + 1, block);
  Ints dims;
  for (int64_t d = 0; d <= rank; ++d) {
    if (d != at + 1) dims.push_back(d);
  }
  Shape flat = from;
  flat[dim] *= block;
  return b.slice_dim(b.reshape(b.broadcast(v, wide, dims), flat), at, 0, to[dim]);
}

// 64-bit integers hold any sum of a quantised value and a zero point; floats are exact for the same.
void lower_quantize(NodeContext& ctx) {
  Builder& b = ctx.b;
  const Shape shape = ctx.shape(0);
  const int64_t axis = ctx.attr_int("axis", 1), block = ctx.attr_int("block_size", 0);
  DType to = DType::kU8;
  if (ctx.attr_int("output_dtype", 0) != 0) to = ctx.attr_dtype("output_dtype", to);
  if (ctx.has(2)) to = ctx.dtype(2);
  DType precision = ctx.dtype(1) == DType::kF64 ? DType::kF64 : DType::kF32;
  if (ctx.attr_int("precision", 0) != 0) precision = ctx.attr_dtype("precision", precision);
  const ValueId x = b.cast(ctx.in(0), precision);
  const ValueId scale = b.cast(stretch(ctx, ctx.in(1), shape, axis, block), precision);
  const ValueId ratio = precision == DType::kF32 ? exact_ratio(b, x, scale) : b.div(x, scale);
  if (is_float(to)) {
    if (bits_of(to) > 8) ctx.invalid(fmt::format("{} is no quantised type", to_string(to)));
    ctx.set(0, b.cast(ratio, to, ctx.attr_int("saturate", 1) != 0));
    return;
  }
  std::optional<ValueId> zero;
  if (ctx.has(2)) zero = stretch(ctx, ctx.in(2), shape, axis, block);
  ctx.set(0, round_to_quantized(b, ratio, zero, to));
}

void lower_dequantize(NodeContext& ctx) {
  Builder& b = ctx.b;
  const Shape shape = ctx.shape(0);
  const int64_t axis = ctx.attr_int("axis", 1), block = ctx.attr_int("block_size", 0);
  DType to = ctx.dtype(1);
  if (ctx.attr_int("output_dtype", 0) != 0) to = ctx.attr_dtype("output_dtype", to);
  const ValueId scale = stretch(ctx, ctx.in(1), shape, axis, block);
  ValueId x = ctx.in(0);
  if (ctx.has(2) && is_int(ctx.dtype(0))) {
    // Both fit in 32 bits with their difference, save for i32 itself, whose zero point is 0.
    x = b.sub(b.cast(x, DType::kI32), b.cast(stretch(ctx, ctx.in(2), shape, axis, block), DType::kI32));
  }
  const DType compute = to == DType::kF64 ? DType::kF64 : DType::kF32;
  ctx.set(0, b.cast(b.mul(b.cast(x, compute), b.cast(scale, compute)), to));
}

void lower_dynamic_quantize(NodeContext& ctx) {
  const DynamicallyQuantized q = dynamically_quantized(ctx.b, ctx.in(0));
  ctx.set(0, q.value);
  ctx.set(1, q.scale);
  ctx.set(2, q.zero_point);
}

}  // namespace

DynamicallyQuantized dynamically_quantized(Builder& b, ValueId x) {
  Ints all;
  for (int64_t d = 0; d < b.rank(x); ++d) all.push_back(d);
  // A range that starts at 0 has the zero point 0, even if its end is NaN.
  const bool from_zero = ir::sign_of(b.graph(), x) != ir::Sign::kAny;
  const ValueId high = b.binary(Op::kMax, b.reduce("max", x, all), 0.0);
  const ValueId low = from_zero ? b.scalar(b.dtype(x), 0) : b.binary(Op::kMin, b.reduce("min", x, all), 0.0);
  const ValueId range = b.sub(high, low);
  const ValueId scale = b.select(b.binary(Op::kEq, range, 0.0), b.scalar(b.dtype(x), 1),
                                 exact_ratio(b, range, b.scalar(b.dtype(x), 255)));
  const ValueId zero =
      from_zero ? b.scalar(DType::kU8, 0)
                : round_to_quantized(b, b.unary(Op::kNeg, exact_ratio(b, low, scale)), std::nullopt, DType::kU8);
  return {round_to_quantized(b, exact_ratio(b, x, scale), zero, DType::kU8), scale, zero};
}

ValueId exact_ratio(Builder& b, ValueId x, ValueId scale) {
  return b.cast(b.div(b.cast(x, DType::kF64), b.cast(scale, DType::kF64)), DType::kF32);
}

ValueId round_to_quantized(Builder& b, ValueId ratio, std::optional<ValueId> zero_point, DType to) {
  const DType dtype = b.dtype(ratio);
  ValueId rounded = b.unary(Op::kRound, ratio);
  if (zero_point) rounded = b.add(rounded, b.cast(*zero_point, dtype));
  const auto [low, high] = quantized_range(to);
  // NaN passes the bounds and the cast makes it 0.
  rounded = b.min(b.max(rounded, b.full(dtype, b.shape(rounded), low)), b.full(dtype, b.shape(rounded), high));
  return b.cast(rounded, to);
}

std::pair<double, double> quantized_range(DType type) {
  const int bits = bits_of(type);
  if (!is_int(type) || bits > 32) {
    fail(ErrorCode::kUnsupportedType, "quantisation", fmt::format("{} is no quantised type", to_string(type)));
  }
  const double span = static_cast<double>(int64_t{1} << bits);
  if (is_unsigned_int(type)) return {0, span - 1};
  return {-span / 2, span / 2 - 1};
}

std::span<const OpHandler> quant_ops() {
  static constexpr std::array kHandlers = {
      OpHandler{"", "QuantizeLinear", 10, kNewestOpset, lower_quantize},
      OpHandler{"", "DequantizeLinear", 10, kNewestOpset, lower_dequantize},
      OpHandler{"", "DynamicQuantizeLinear", 11, kNewestOpset, lower_dynamic_quantize},
      OpHandler{"com.microsoft", "QuantizeLinear", 1, kAnyVersion, lower_quantize},
      OpHandler{"com.microsoft", "DequantizeLinear", 1, kAnyVersion, lower_dequantize},
  };
  return kHandlers;
}

}  // namespace heddle::onnx
