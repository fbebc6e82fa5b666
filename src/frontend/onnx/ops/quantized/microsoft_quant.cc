#include <algorithm>
#include <array>

#include "frontend/onnx/lowering/op_helpers.h"
#include "frontend/onnx/lowering/quantize.h"
#include "frontend/onnx/op_registry.h"
#include "ir/reference/scalar.h"

// ONNX Runtime's operators on quantised numbers beside those of the standard.
namespace heddle::onnx {
namespace {

using ir::Builder;

ValueId transposed_if(NodeContext& ctx, size_t i, const char* attribute) {
  if (ctx.rank(i) != 2) ctx.invalid(fmt::format("input {} must have rank 2", i));
  return ctx.attr_int(attribute, 0) != 0 ? ctx.b.transpose(ctx.in(i), {1, 0}) : ctx.in(i);
}

void quantized_gemm(NodeContext& ctx) {
  Builder& b = ctx.b;
  const ValueId a = transposed_if(ctx, 0, "transA"), w = transposed_if(ctx, 3, "transB");
  ValueId sum = integer_matmul(ctx, a, ctx.in(2), w, ctx.in(5));
  if (ctx.has(6)) sum = b.add(sum, ctx.in(6));
  ValueId scale = b.mul(b.reshape(ctx.in(1), {}), ctx.in(4));
  if (b.shape(scale) == Shape{1}) scale = b.reshape(scale, {});
  scale = b.binary(Op::kMul, scale, ctx.attr_float("alpha", 1));
  const ValueId y = b.mul(b.cast(sum, DType::kF32), scale);
  ctx.set(0, ctx.has(7) ? quantized(ctx, y, 7, ctx.has(8) ? ctx.dtype(8) : ctx.dtype(0)) : y);
}

// A standard operator on the number behind input 0, whose result is quantised by the inputs from `scale` on.
void through_real(NodeContext& ctx, const char* op, size_t scale) {
  const DType type = ctx.dtype(0);
  ctx.replace_input(0, dequantized(ctx, 0, 1));
  find_handler("", op, kNewestOpset)->lower(ctx);
  ctx.set(0, quantized(ctx, ctx.outputs().at(0).tensor(), scale, type));
}

// The channels of input 0 are last: they are moved to where the standard has them, and those of the result back.
void channels_first(NodeContext& ctx, void (*lower)(NodeContext&)) {
  const int64_t last = ctx.rank(0) - 1;
  ctx.replace_input(0, move_axis(ctx.b, ctx.in(0), last, 1));
  lower(ctx);
  ctx.set(0, move_axis(ctx.b, ctx.outputs().at(0).tensor(), 1, last));
}

template <void (*kLower)(NodeContext&)>
void in_either_layout(NodeContext& ctx) {
  if (ctx.attr_int("channels_last", 0) != 0) return channels_first(ctx, kLower);
  kLower(ctx);
}

void quantized_average_pool(NodeContext& ctx) {
  through_real(ctx, "AveragePool", 3);
}

void quantized_conv(NodeContext& ctx) {
  find_handler("", "QLinearConv", kNewestOpset)->lower(ctx);
}

void max_pool_channels_last(NodeContext& ctx) {
  channels_first(ctx, find_handler("", "MaxPool", kNewestOpset)->lower);
}

void quantized_softmax(NodeContext& ctx) {
  const bool matrix = ctx.attr_int("opset") < 13;  // all dimensions from the axis on
  const int64_t rank = ctx.rank(0), axis = ctx.axis(ctx.attr_int("axis", matrix ? 1 : -1), rank);
  const ValueId y = ctx.b.softmax(dequantized(ctx, 0, 1), matrix ? int_range(rank - axis, axis) : Ints{axis});
  ctx.set(0, quantized(ctx, y, 3, ctx.dtype(0)));
}

void quantized_mean(NodeContext& ctx) {
  const int64_t rank = ctx.rank(0);
  const Ints axes = ctx.axes(ctx.attr_ints("axes", int_range(rank)), rank);
  const ValueId y = ctx.b.mean(dequantized(ctx, 0, 1), axes, ctx.attr_int("keepdims", 1) != 0);
  ctx.set(0, quantized(ctx, y, 3, ctx.dtype(0)));
}

void quantized_where(NodeContext& ctx) {
  const ValueId y = ctx.b.select(ctx.in(0), dequantized(ctx, 1, 2), dequantized(ctx, 4, 5));
  ctx.set(0, quantized(ctx, y, 7, ctx.dtype(1)));
}

void dynamic_quantized_matmul(NodeContext& ctx) {
  Builder& b = ctx.b;
  const DynamicallyQuantized a = dynamically_quantized(b, ctx.in(0));
  const ValueId sum = integer_matmul(ctx, a.value, a.zero_point, ctx.in(1), ctx.optional_in(3));
  ValueId y = b.mul(b.cast(sum, DType::kF32), b.mul(a.scale, ctx.in(2)));
  if (ctx.has(4)) y = b.add(y, ctx.in(4));
  ctx.set(0, y);
}

// ---- Weights of few bits: several to a byte, the first in its lowest bits; a scale for each block of a row.

ValueId unpacked(Builder& b, ValueId x, int64_t bits, bool highest_first = false) {
  if (bits == 8) return x;
  Shape shape = b.shape(x);
  const auto last = static_cast<int64_t>(shape.size());
  std::vector<ValueId> parts;
  for (int64_t shift = 0; shift < 8; shift += bits) {
    const ValueId low = b.binary(Op::kShr, x, static_cast<double>(shift));
    parts.push_back(unsqueeze(b, b.binary(Op::kAnd, low, static_cast<double>((1 << bits) - 1)), {last}));
  }
  if (highest_first) std::reverse(parts.begin(), parts.end());
  shape.back() *= 8 / bits;
  return b.reshape(b.concat(parts, last), shape);
}

// v [.., blocks] repeated to [.., extent].
ValueId per_block(Builder& b, ValueId v, int64_t block, int64_t extent) {
  Shape shape = b.shape(v);
  const auto last = static_cast<int64_t>(shape.size());
  Shape wide = shape;
  wide.push_back(block);
  shape.back() *= block;
  return b.slice_dim(b.reshape(b.broadcast(v, wide, int_range(last)), shape), last - 1, 0, extent);
}

// (q - zero) * scale for rows of blocks, rounded to the scale's type. Zero points are packed as the numbers are, or of
// the scale's type; without any they are `fallback`.
ValueId block_dequantized(Builder& b, ValueId q, ValueId scale, std::optional<ValueId> zero, int64_t bits,
                          int64_t block, double fallback) {
  const int64_t extent = b.shape(q).back(), blocks = b.shape(scale).back();
  const DType type = b.dtype(scale);
  ValueId x = b.cast(q, DType::kF32);
  if (!zero) {
    if (fallback != 0) x = b.binary(Op::kSub, x, fallback);
  } else {
    ValueId z = *zero;
    if (b.dtype(z) == DType::kU8 && bits < 8) z = unpacked(b, z, bits);
    z = b.slice_dim(z, b.rank(z) - 1, 0, blocks);
    x = b.sub(x, per_block(b, b.cast(z, DType::kF32), block, extent));
  }
  return b.cast(b.mul(x, per_block(b, b.cast(scale, DType::kF32), block, extent)), type);
}

int64_t packed_bits(NodeContext& ctx) {
  const int64_t bits = ctx.attr_int("bits", 4);
  if (bits != 2 && bits != 4 && bits != 8) ctx.unsupported(fmt::format("{} bits are not supported", bits));
  return bits;
}

int64_t block_size(NodeContext& ctx, int64_t fallback) {
  const int64_t block = ctx.attr_int("block_size", fallback);
  if (block < 8 || (block & (block - 1)) != 0) ctx.invalid(fmt::format("a block_size of {}", block));
  return block;
}

void require_elements(NodeContext& ctx, size_t i, int64_t count, const char* name) {
  if (element_count(ctx.shape(i)) != count)
    ctx.invalid(fmt::format("{} has {} elements, {} expected", name, element_count(ctx.shape(i)), count));
}

// The product with weights w [N, K], whose operands may be rounded to 8 bits if the model says so.
void set_product(NodeContext& ctx, ValueId a, ValueId w, size_t bias) {
  Builder& b = ctx.b;
  constexpr int64_t kBytes = 4;  // the accuracy level; lower ones ask for f32, bf16 and f16
  const bool rounds = ctx.attr_int("accuracy_level", 0) == kBytes;
  ValueId y = b.matmul(a, b.transpose(w, {1, 0}), rounds ? 8 : 0);
  if (ctx.has(bias)) y = b.add(y, ctx.in(bias));
  ctx.set(0, y);
}

// Where columns of the weights belong to blocks in any order, they are sorted by block, and those of the other operand
// with them.
struct Order {
  ir::Ints columns;  // in the order of their blocks
  bool is_sorted = true;
};

// The order by the input g_idx. Nothing if blocks are not all full, or the input is not constant.
std::optional<Order> order_of_columns(NodeContext& ctx, size_t input, int64_t block) {
  const std::optional<Tensor> groups = ctx.try_constant(input);
  if (!groups) return std::nullopt;
  const auto group_of = [&](int64_t column) { return ir::integer_at(*groups, column); };
  Order order;
  order.columns = int_range(groups->size());
  std::stable_sort(order.columns.begin(), order.columns.end(),
                   [&](int64_t x, int64_t y) { return group_of(x) < group_of(y); });
  for (size_t i = 0; i < order.columns.size(); ++i) {
    if (group_of(order.columns[i]) != static_cast<int64_t>(i) / block) return std::nullopt;
    order.is_sorted = order.is_sorted && order.columns[i] == static_cast<int64_t>(i);
  }
  return order;
}

void matmul_of_few_bits(NodeContext& ctx) {
  Builder& b = ctx.b;
  const int64_t n = ctx.attr_int("N"), k = ctx.attr_int("K"), bits = packed_bits(ctx), block = block_size(ctx, 0);
  if (n < 1 || k < 1) ctx.invalid("N and K must be positive");
  if (ctx.attr_int("weight_prepacked", 0) != 0) ctx.unsupported("prepacked weights are not supported");
  const int64_t blocks = (k + block - 1) / block, bytes = block * bits / 8;
  require_elements(ctx, 1, n * blocks * bytes, "B");
  require_elements(ctx, 2, n * blocks, "scales");
  if (ctx.dtype(1) != DType::kU8) ctx.invalid("B must be uint8");
  ValueId q = b.reshape(unpacked(b, b.reshape(ctx.in(1), {n, blocks * bytes}), bits), {n, blocks * block});
  q = b.slice_dim(q, 1, 0, k);
  std::optional<ValueId> zero = ctx.optional_in(3);
  if (zero) {
    const int64_t row = ctx.dtype(3) == DType::kU8 ? (blocks * bits + 7) / 8 : blocks;
    require_elements(ctx, 3, n * row, "zero_points");
    zero = b.reshape(*zero, {n, row});
  }
  ValueId a = ctx.in(0), scale = b.reshape(ctx.in(2), {n, blocks});
  const auto centre = static_cast<double>(1 << (bits - 1));
  if (!ctx.has(4)) return set_product(ctx, a, block_dequantized(b, q, scale, zero, bits, block, centre), 5);
  require_elements(ctx, 4, k, "g_idx");
  if (const std::optional<Order> order = order_of_columns(ctx, 4, block)) {
    if (!order->is_sorted) {
      const ValueId columns = b.ints(order->columns);
      q = b.gather(q, columns, 1);
      a = b.gather(a, columns, ctx.rank(0) - 1);
    }
    return set_product(ctx, a, block_dequantized(b, q, scale, zero, bits, block, centre), 5);
  }
  // Each column has its own scales.
  const ValueId groups = b.reshape(ctx.in(4), {k});
  if (zero) {
    if (b.dtype(*zero) == DType::kU8) zero = unpacked(b, *zero, bits);
    zero = b.gather(*zero, groups, 1);
    if (b.dtype(*zero) == DType::kU8) zero = b.cast(*zero, DType::kF32);
  }
  scale = b.gather(scale, groups, 1);
  set_product(ctx, a, block_dequantized(b, q, scale, zero, bits, 1, centre), 5);
}

// Four bits are the number of an entry of a table; the first of two is in the higher bits. Blocks may reach over rows.
void matmul_of_tables(NodeContext& ctx) {
  static constexpr std::array<float, 16> kFp4 = {
      0, 5.208333333e-03f,  0.66666667f,  1,  0.33333333f,  0.5f,  0.16666667f,  0.25f,
      0, -5.208333333e-03f, -0.66666667f, -1, -0.33333333f, -0.5f, -0.16666667f, -0.25f};
  static constexpr std::array<float, 16> kNf4 = {-1,
                                                 -0.6961928009986877f,
                                                 -0.5250730514526367f,
                                                 -0.39491748809814453f,
                                                 -0.28444138169288635f,
                                                 -0.18477343022823334f,
                                                 -0.09105003625154495f,
                                                 0,
                                                 0.07958029955625534f,
                                                 0.16093020141124725f,
                                                 0.24611230194568634f,
                                                 0.33791524171829224f,
                                                 0.44070982933044434f,
                                                 0.5626170039176941f,
                                                 0.7229568362236023f,
                                                 1};
  Builder& b = ctx.b;
  const int64_t n = ctx.attr_int("N"), k = ctx.attr_int("K"), block = block_size(ctx, 0),
                kind = ctx.attr_int("quant_type");
  if (n < 1 || k < 1) ctx.invalid("N and K must be positive");
  if (kind != 0 && kind != 1) ctx.unsupported(fmt::format("quant_type {} is not supported", kind));
  const int64_t count = n * k, blocks = (count + block - 1) / block;
  require_elements(ctx, 1, (count + 1) / 2, "B");
  require_elements(ctx, 2, blocks, "absmax");
  if (ctx.dtype(1) != DType::kU8) ctx.invalid("B must be uint8");
  const ValueId all = unpacked(b, b.reshape(ctx.in(1), {(count + 1) / 2}), 4, true);
  const ValueId q = b.reshape(b.slice_dim(all, 0, 0, count), {n, k});
  const ValueId table =
      b.constant(Tensor::of<float>(DType::kF32, {16}, std::span<const float>(kind == 0 ? kFp4 : kNf4)));
  const ValueId scale = per_block(b, b.cast(b.reshape(ctx.in(2), {blocks}), DType::kF32), block, count);
  const ValueId w = b.mul(b.gather(table, q, 0), b.reshape(scale, {n, k}));
  set_product(ctx, ctx.in(0), b.cast(w, ctx.dtype(2)), 3);
}

void gather_of_few_bits(NodeContext& ctx) {
  Builder& b = ctx.b;
  const int64_t rank = ctx.rank(0), block = block_size(ctx, 128);
  const int64_t axis = ctx.axis(ctx.attr_int("gather_axis", 0), rank);
  if (ctx.axis(ctx.attr_int("quantize_axis", 1), rank) != rank - 1 || axis == rank - 1) {
    ctx.unsupported("only blocks along the last axis and slices of another one are supported");
  }
  if (is_float(ctx.dtype(0))) ctx.unsupported("data of floats is not supported");
  const bool packed = ctx.dtype(0) == DType::kU8;
  const int64_t bits = packed ? packed_bits(ctx) : 8;
  const auto rows = [&](size_t i) { return b.gather(ctx.in(i), ctx.in(1), axis); };
  std::optional<ValueId> zero;
  if (ctx.has(3)) zero = rows(3);
  const ValueId q = unpacked(b, rows(0), bits);
  if (b.shape(q).back() > ctx.shape(2).back() * block) ctx.invalid("there are fewer scales than blocks");
  ctx.set(0, block_dequantized(b, q, rows(2), zero, bits, block, packed ? static_cast<double>(1 << (bits - 1)) : 0));
}

}  // namespace

std::span<const OpHandler> microsoft_quant_ops() {
  static constexpr std::array kTable = {
      OpHandler{kMicrosoft, "DynamicQuantizeMatMul", 1, kAnyVersion, dynamic_quantized_matmul},
      OpHandler{kMicrosoft, "GatherBlockQuantized", 1, kAnyVersion, gather_of_few_bits},
      OpHandler{kMicrosoft, "MatMulBnb4", 1, kAnyVersion, matmul_of_tables},
      OpHandler{kMicrosoft, "MatMulNBits", 1, kAnyVersion, matmul_of_few_bits},
      OpHandler{kMicrosoft, "NhwcMaxPool", 1, kAnyVersion, max_pool_channels_last},
      OpHandler{kMicrosoft, "QGemm", 1, kAnyVersion, quantized_gemm},
      OpHandler{kMicrosoft, "QLinearAveragePool", 1, kAnyVersion, in_either_layout<quantized_average_pool>},
      OpHandler{kMicrosoft, "QLinearConv", 1, kAnyVersion, in_either_layout<quantized_conv>},
      OpHandler{kMicrosoft, "QLinearReduceMean", 1, kAnyVersion, quantized_mean},
      OpHandler{kMicrosoft, "QLinearSoftmax", 1, kAnyVersion, quantized_softmax},
      OpHandler{kMicrosoft, "QLinearWhere", 1, kAnyVersion, quantized_where},
  };
  return kTable;
}

}  // namespace heddle::onnx
