#include <algorithm>
#include <array>

#include "frontend/onnx/lowering/op_helpers.h"
#include "frontend/onnx/lowering/quantize.h"
#include "frontend/onnx/lowering/window.h"
#include "frontend/onnx/node_context.h"
#include "frontend/onnx/op_registry.h"
#include "ir/reference/array.h"

// Operators on quantised operands: contractions in 32-bit integers, the rest through f32.
namespace heddle::onnx {
namespace {

using ir::Builder;

bool is_zero(const NodeContext& ctx, ValueId v) {
  const auto known = ctx.try_constant_of(v);
  if (!known) return false;
  const ir::Array array = ir::to_array(*known);
  return !array.real() && std::all_of(array.i().begin(), array.i().end(), [](int64_t z) { return z == 0; });
}

// x - zero, which fits 32 bits; where the zero point is none the bytes are kept, which contractions widen themselves.
ValueId centered(const NodeContext& ctx, ValueId x, std::optional<ValueId> zero) {
  Builder& b = ctx.b;
  if (!zero || is_zero(ctx, *zero)) return x;
  return b.sub(b.cast(x, DType::kI32), b.cast(*zero, DType::kI32));
}

// Operands of a contraction must agree: bytes, or both 32 bits.
void agree(Builder& b, ValueId& x, ValueId& y) {
  const bool bytes = size_of(b.dtype(x)) == 1 && size_of(b.dtype(y)) == 1;
  if (bytes) return;
  x = b.cast(x, DType::kI32);
  y = b.cast(y, DType::kI32);
}

ValueId as_f32(const NodeContext& ctx, size_t i) {
  return ctx.b.cast(ctx.in(i), DType::kF32);
}

// One number, or one per row of a left matrix: [M] stands for [M,1]. Right operands broadcast as they are.
ValueId per_row(Builder& b, ValueId v) {
  if (b.rank(v) != 1 || b.shape(v)[0] == 1) return b.rank(v) == 1 ? b.reshape(v, {}) : v;
  return b.reshape(v, {b.shape(v)[0], 1});
}

void lower_matmul_integer(NodeContext& ctx) {
  ctx.set(0, integer_matmul(ctx, ctx.in(0), ctx.optional_in(2), ctx.in(1), ctx.optional_in(3)));
}

void lower_qlinear_matmul(NodeContext& ctx) {
  Builder& b = ctx.b;
  const ValueId sum = b.cast(integer_matmul(ctx, ctx.in(0), ctx.in(2), ctx.in(3), ctx.in(5)), DType::kF32);
  const ValueId scale = b.div(b.mul(per_row(b, as_f32(ctx, 1)), as_f32(ctx, 4)), per_row(b, as_f32(ctx, 6)));
  ctx.set(0, round_to_quantized(b, b.mul(sum, scale), per_row(b, ctx.in(7)), ctx.dtype(7)));
}

// One number, or one per output channel of weights [O, ...].
ValueId per_filter(const NodeContext& ctx, size_t i, int64_t rank) {
  Builder& b = ctx.b;
  const ValueId v = ctx.in(i);
  if (element_count(b.shape(v)) == 1) return b.reshape(v, {});
  Shape shape(static_cast<size_t>(rank), 1);
  shape[0] = element_count(b.shape(v));
  return b.reshape(v, shape);
}

ValueId integer_conv(NodeContext& ctx, size_t x_input, std::optional<ValueId> x_zero, size_t w_input,
                     std::optional<size_t> w_zero) {
  Builder& b = ctx.b;
  const Shape x_shape = ctx.shape(x_input), w_shape = ctx.shape(w_input);
  if (x_shape.size() < 3 || w_shape.size() != x_shape.size()) ctx.invalid("operands of equal rank, 3 or more expected");
  const Shape spatial(x_shape.begin() + 2, x_shape.end()), kernel(w_shape.begin() + 2, w_shape.end());
  const Window window = read_window(ctx, spatial, kernel);
  if (window.kernel != kernel) ctx.invalid("kernel_shape differs from the weights' shape");
  if (x_zero) x_zero = b.reshape(*x_zero, {});
  std::optional<ValueId> wz;
  if (w_zero && ctx.has(*w_zero)) wz = per_filter(ctx, *w_zero, static_cast<int64_t>(w_shape.size()));
  ValueId x = centered(ctx, ctx.in(x_input), x_zero), w = centered(ctx, ctx.in(w_input), wz);
  agree(b, x, w);
  return b.emit(Op::kConv, {x, w},
                {{"strides", window.strides},
                 {"low", window.low},
                 {"high", window.high},
                 {"dilations", window.dilations},
                 {"lhs_dilations", Ints(spatial.size(), 1)},
                 {"groups", ctx.attr_int("group", 1)},
                 {"layout", "nchw"}});
}

void lower_conv_integer(NodeContext& ctx) {
  ctx.set(0, integer_conv(ctx, 0, ctx.optional_in(2), 1, 3));
}

void lower_qlinear_conv(NodeContext& ctx) {
  Builder& b = ctx.b;
  ValueId sum = integer_conv(ctx, 0, ctx.in(2), 3, 5);
  const int64_t rank = b.rank(sum);
  if (ctx.has(8)) sum = b.add(sum, per_channel(b, ctx.in(8), rank));
  const ValueId filters = per_filter(ctx, 4, 1);
  const ValueId scale =
      b.div(b.mul(b.reshape(as_f32(ctx, 1), {}), b.cast(filters, DType::kF32)), b.reshape(as_f32(ctx, 6), {}));
  const ValueId spread = b.rank(scale) == 0 ? scale : per_channel(b, scale, rank);
  ctx.set(0, round_to_quantized(b, b.mul(b.cast(sum, DType::kF32), spread), b.reshape(ctx.in(7), {}), ctx.dtype(7)));
}

// ---- com.microsoft

void lower_qlinear_add(NodeContext& ctx) {
  ctx.set(0, quantized(ctx, ctx.b.add(dequantized(ctx, 0, 1), dequantized(ctx, 3, 4)), 6, ctx.dtype(0)));
}

void lower_qlinear_mul(NodeContext& ctx) {
  ctx.set(0, quantized(ctx, ctx.b.mul(dequantized(ctx, 0, 1), dequantized(ctx, 3, 4)), 6, ctx.dtype(0)));
}

void lower_qlinear_sigmoid(NodeContext& ctx) {
  ctx.set(0, quantized(ctx, ctx.b.sigmoid(dequantized(ctx, 0, 1)), 3, ctx.dtype(0)));
}

void lower_qlinear_leaky_relu(NodeContext& ctx) {
  Builder& b = ctx.b;
  const ValueId x = dequantized(ctx, 0, 1);
  const ValueId small = b.binary(Op::kMul, x, ctx.attr_float("alpha", 0.01));
  ctx.set(0, quantized(ctx, b.select(b.binary(Op::kGe, x, 0.0), x, small), 3, ctx.dtype(0)));
}

void lower_qlinear_global_average_pool(NodeContext& ctx) {
  const bool last = ctx.attr_int("channels_last", 0) != 0;
  const int64_t rank = ctx.rank(0);
  if (rank < 3) ctx.invalid("an input of rank 3 or more expected");
  const ValueId mean = ctx.b.mean(dequantized(ctx, 0, 1), int_range(rank - 2, last ? 1 : 2), true);
  ctx.set(0, quantized(ctx, mean, 3, ctx.dtype(0)));
}

void lower_qlinear_concat(NodeContext& ctx) {
  if (ctx.input_count() < 5 || (ctx.input_count() - 2) % 3 != 0) ctx.invalid("triples of inputs expected");
  std::vector<ValueId> parts;
  for (size_t i = 2; i < ctx.input_count(); i += 3)
    parts.push_back(quantized(ctx, dequantized(ctx, i, i + 1), 0, ctx.dtype(i)));
  ctx.set(0, ctx.b.concat(parts, ctx.axis(ctx.attr_int("axis"), ctx.rank(2))));
}

void lower_matmul_integer_to_float(NodeContext& ctx) {
  Builder& b = ctx.b;
  const ValueId sum =
      b.cast(integer_matmul(ctx, ctx.in(0), ctx.optional_in(4), ctx.in(1), ctx.optional_in(5)), DType::kF32);
  ValueId y = b.mul(sum, b.mul(per_row(b, as_f32(ctx, 2)), as_f32(ctx, 3)));
  if (ctx.has(6)) y = b.add(y, as_f32(ctx, 6));
  ctx.set(0, b.cast(y, ctx.dtype(2)));
}

}  // namespace

ValueId integer_matmul(const NodeContext& ctx, ValueId a, std::optional<ValueId> a_zero, ValueId w,
                       std::optional<ValueId> w_zero) {
  if (a_zero) a_zero = per_row(ctx.b, *a_zero);
  ValueId x = centered(ctx, a, a_zero), y = centered(ctx, w, w_zero);
  agree(ctx.b, x, y);
  return ctx.b.matmul(x, y);
}

ValueId dequantized(const NodeContext& ctx, size_t i, size_t scale) {
  Builder& b = ctx.b;
  ValueId x = b.cast(ctx.in(i), DType::kI32);
  if (ctx.has(scale + 1)) x = b.sub(x, b.cast(b.reshape(ctx.in(scale + 1), {}), DType::kI32));
  return b.mul(b.cast(x, DType::kF32), b.reshape(as_f32(ctx, scale), {}));
}

ValueId quantized(const NodeContext& ctx, ValueId y, size_t scale, DType like) {
  Builder& b = ctx.b;
  std::optional<ValueId> zero;
  if (ctx.has(scale + 1)) zero = b.reshape(ctx.in(scale + 1), {});
  return round_to_quantized(b, exact_ratio(b, y, b.reshape(as_f32(ctx, scale), {})), zero, like);
}

std::span<const OpHandler> qlinear_ops() {
  static constexpr OpHandler kTable[] = {
      OpHandler{"", "ConvInteger", 10, kAnyVersion, lower_conv_integer},
      OpHandler{"", "MatMulInteger", 10, kAnyVersion, lower_matmul_integer},
      OpHandler{"", "QLinearConv", 10, kAnyVersion, lower_qlinear_conv},
      OpHandler{"", "QLinearMatMul", 10, kAnyVersion, lower_qlinear_matmul},
      OpHandler{kMicrosoft, "MatMulIntegerToFloat", 1, kAnyVersion, lower_matmul_integer_to_float},
      OpHandler{kMicrosoft, "QLinearAdd", 1, kAnyVersion, lower_qlinear_add},
      OpHandler{kMicrosoft, "QLinearConcat", 1, kAnyVersion, lower_qlinear_concat},
      OpHandler{kMicrosoft, "QLinearGlobalAveragePool", 1, kAnyVersion, lower_qlinear_global_average_pool},
      OpHandler{kMicrosoft, "QLinearLeakyRelu", 1, kAnyVersion, lower_qlinear_leaky_relu},
      OpHandler{kMicrosoft, "QLinearMul", 1, kAnyVersion, lower_qlinear_mul},
      OpHandler{kMicrosoft, "QLinearSigmoid", 1, kAnyVersion, lower_qlinear_sigmoid},
  };
  return kTable;
}

}  // namespace heddle::onnx
