#include <algorithm>
#include <array>
#include <cmath>

#include "frontend/onnx/lowering/op_helpers.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {
namespace {

// x * scale + bias with per-channel vectors.
ValueId scale_channels(NodeContext& ctx, ValueId x, ValueId scale, ValueId bias) {
  const int64_t rank = ctx.b.rank(x);
  const DType type = ctx.b.dtype(x);
  const ValueId s = per_channel(ctx.b, ctx.b.cast(scale, type), rank);
  return ctx.b.add(ctx.b.mul(x, s), per_channel(ctx.b, ctx.b.cast(bias, type), rank));
}

// Statistics of the batch; the running ones move towards them (population variance, as the operator defines it).
void batch_norm_training(NodeContext& ctx) {
  const ValueId x = ctx.in(0);
  const int64_t rank = ctx.rank(0);
  Ints dims = int_range(rank);
  dims.erase(dims.begin() + 1);
  const DType type = ctx.dtype(0), wide = wide_dtype(type);
  const Normalized n = normalize(ctx.b, ctx.b.cast(x, wide), dims, ctx.attr_float("epsilon", 1e-5f));
  ctx.set(0, ctx.b.cast(scale_channels(ctx, n.value, ctx.in(1), ctx.in(2)), type));
  const double momentum = ctx.attr_float("momentum", 0.9f);
  const ValueId centred = ctx.b.sub(ctx.b.cast(x, wide), n.mean);
  const std::array current = {n.mean, ctx.b.mean(square(ctx.b, centred), dims, true)};
  for (size_t i = 0; i < 2; ++i) {
    const DType out = ctx.dtype(3 + i);
    const ValueId old = ctx.b.binary(Op::kMul, ctx.b.cast(ctx.in(3 + i), wide), momentum);
    const ValueId now = ctx.b.reshape(current[i], ctx.b.shape(old));
    ctx.set(1 + i, ctx.b.cast(ctx.b.add(old, ctx.b.binary(Op::kMul, now, 1 - momentum)), out));
  }
}

void batch_norm(NodeContext& ctx) {
  const int64_t rank = ctx.rank(0);
  if (rank < 2) ctx.invalid("the input must have a batch and a channel dimension");
  require_inference(ctx);
  if (ctx.attr_int("training_mode", 0) != 0) return batch_norm_training(ctx);
  const DType type = ctx.dtype(0), wide = wide_dtype(type);
  const bool per_element = ctx.version() < 9 && ctx.attr_int("spatial", 1) == 0;  // of [C, ...], not of C
  Shape element = ctx.shape(0);
  element[0] = 1;
  const auto vector = [&](size_t i) {
    const ValueId wider = ctx.b.cast(ctx.in(i), wide);
    if (!per_element) return per_channel(ctx.b, wider, rank);
    if (element_count(ctx.shape(i)) != element_count(element)) {
      ctx.invalid(fmt::format("spatial = 0 takes statistics of shape {} without its batch", to_string(element)));
    }
    return ctx.b.reshape(wider, element);
  };
  const ValueId scale = vector(1), bias = vector(2), mean = vector(3), variance = vector(4);
  const ValueId inv_std = ctx.b.unary(Op::kRsqrt, ctx.b.binary(Op::kAdd, variance, ctx.attr_float("epsilon", 1e-5f)));
  const ValueId factor = ctx.b.mul(scale, inv_std);
  const ValueId shift = ctx.b.sub(bias, ctx.b.mul(mean, factor));
  ctx.set(0, ctx.b.cast(ctx.b.add(ctx.b.mul(ctx.b.cast(ctx.in(0), wide), factor), shift), type));
}

void instance_norm(NodeContext& ctx) {
  const int64_t rank = ctx.rank(0);
  if (rank < 3) ctx.invalid("the input must have spatial dimensions");
  const DType type = ctx.dtype(0);
  const ValueId x = ctx.b.cast(ctx.in(0), wide_dtype(type));
  const Normalized n = normalize(ctx.b, x, int_range(rank - 2, 2), ctx.attr_float("epsilon", 1e-5f));
  ctx.set(0, ctx.b.cast(scale_channels(ctx, n.value, ctx.in(1), ctx.in(2)), type));
}

void group_norm(NodeContext& ctx) {
  const Shape shape = ctx.shape(0);
  const int64_t groups = ctx.attr_int("num_groups");
  if (shape.size() < 2 || groups < 1 || shape[1] % groups != 0) ctx.invalid("the channels do not split into groups");
  const DType type = ctx.dtype(0);
  Shape grouped = {shape[0], groups, shape[1] / groups};
  grouped.insert(grouped.end(), shape.begin() + 2, shape.end());
  const ValueId x = ctx.b.reshape(ctx.b.cast(ctx.in(0), wide_dtype(type)), grouped);
  const Ints dims = int_range(static_cast<int64_t>(grouped.size()) - 2, 2);
  const Normalized n = normalize(ctx.b, x, dims, ctx.attr_float("epsilon", 1e-5f));
  ValueId scaled;
  if (ctx.version() < 21) {  // one scale and bias for each group
    scaled = ctx.b.reshape(scale_channels(ctx, n.value, ctx.in(1), ctx.in(2)), shape);
  } else {
    scaled = scale_channels(ctx, ctx.b.reshape(n.value, shape), ctx.in(1), ctx.in(2));
  }
  ctx.set(0, ctx.b.cast(scaled, type));
}

// Statistics in `stash_type`; scale and bias in the input's type.
void layer_norm(NodeContext& ctx) {
  const int64_t rank = ctx.rank(0);
  const int64_t axis = ctx.axis(ctx.attr_int("axis", -1), rank);
  const DType type = ctx.dtype(0), stash = ctx.attr_dtype("stash_type", DType::kF32);
  const DType wide = type == DType::kF64 ? type : stash;
  const Normalized n =
      normalize(ctx.b, ctx.b.cast(ctx.in(0), wide), int_range(rank - axis, axis), ctx.attr_float("epsilon", 1e-5f));
  ValueId y = ctx.b.mul(ctx.b.cast(n.value, type), ctx.in(1));
  if (ctx.has(2)) y = ctx.b.add(y, ctx.in(2));
  ctx.set(0, y);
  ctx.set(1, n.mean);
  ctx.set(2, n.inv_std);
}

void rms_norm(NodeContext& ctx) {
  const int64_t rank = ctx.rank(0);
  const int64_t axis = ctx.axis(ctx.attr_int("axis", -1), rank);
  const DType type = ctx.dtype(0), stash = ctx.attr_dtype("stash_type", DType::kF32);
  const ValueId x = ctx.b.cast(ctx.in(0), type == DType::kF64 ? type : stash);
  const ValueId power = ctx.b.mean(square(ctx.b, x), int_range(rank - axis, axis), true);
  const ValueId factor = ctx.b.unary(Op::kRsqrt, ctx.b.binary(Op::kAdd, power, ctx.attr_float("epsilon", 1e-5f)));
  const ValueId normalized = ctx.b.cast(ctx.b.mul(x, factor), ctx.dtype(1));
  ctx.set(0, ctx.b.mul(normalized, ctx.in(1)));
}

// A slice of zero norm stays zero.
void lp_norm(NodeContext& ctx) {
  const ValueId x = ctx.in(0);
  const int64_t axis = ctx.axis(ctx.attr_int("axis", -1), ctx.rank(0)), p = ctx.attr_int("p", 2);
  if (p != 1 && p != 2) ctx.invalid("p must be 1 or 2");
  const ValueId sum = ctx.b.reduce("sum", p == 1 ? ctx.b.unary(Op::kAbs, x) : square(ctx.b, x), {axis}, true);
  const ValueId norm = p == 1 ? sum : ctx.b.unary(Op::kSqrt, sum);
  const ValueId zero = ctx.b.binary(Op::kEq, norm, 0.0);
  ctx.set(0, ctx.b.div(x, ctx.b.select(zero, ctx.b.scalar(ctx.dtype(0), 1), norm)));
}

void lrn(NodeContext& ctx) {
  const ValueId x = ctx.in(0);
  const int64_t size = ctx.attr_int("size"), rank = ctx.rank(0);
  if (size < 1 || rank < 2) ctx.invalid("size must be positive and the input must have channels");
  const Ints ones(static_cast<size_t>(rank), 1);
  Ints window = ones, low(static_cast<size_t>(rank), 0), high = low;
  window[1] = size;
  low[1] = (size - 1) / 2;
  high[1] = size - 1 - low[1];
  const ValueId sum = ctx.b.emit(
      Op::kWindowReduce, {square(ctx.b, x)},
      {{"kind", "sum"}, {"window", window}, {"strides", ones}, {"low", low}, {"high", high}, {"dilations", ones}});
  const double alpha = ctx.attr_float("alpha", 1e-4f) / static_cast<double>(size);
  const ValueId base = ctx.b.binary(Op::kAdd, ctx.b.binary(Op::kMul, sum, alpha), ctx.attr_float("bias", 1));
  ctx.set(0, ctx.b.div(x, ctx.b.binary(Op::kPow, base, ctx.attr_float("beta", 0.75))));
}

void mean_variance_norm(NodeContext& ctx) {
  const ValueId x = ctx.in(0);
  const Ints axes = ctx.axes(ctx.attr_ints("axes", {0, 2, 3}), ctx.rank(0));
  const ValueId centred = ctx.b.sub(x, ctx.b.mean(x, axes, true));
  const ValueId variance = ctx.b.mean(square(ctx.b, centred), axes, true);
  ctx.set(0, ctx.b.div(centred, ctx.b.binary(Op::kAdd, ctx.b.unary(Op::kSqrt, variance), 1e-9)));
}

// Before opset 13 the input is seen as a matrix: all dimensions from `axis` on are one.
Ints softmax_dims(NodeContext& ctx) {
  const int64_t rank = ctx.rank(0);
  if (ctx.version() >= 13) return {ctx.axis(ctx.attr_int("axis", -1), rank)};
  const int64_t axis = ctx.axis(ctx.attr_int("axis", 1), std::max<int64_t>(rank, 2));
  return axis >= rank ? Ints{} : int_range(rank - axis, axis);
}

void softmax(NodeContext& ctx) {
  ctx.set(0, ctx.b.softmax(ctx.in(0), softmax_dims(ctx)));
}

void log_softmax(NodeContext& ctx) {
  const ValueId x = ctx.in(0);
  const Ints dims = softmax_dims(ctx);
  const ValueId centred = ctx.b.sub(x, ctx.b.reduce("max", x, dims, true));
  const ValueId sum = ctx.b.reduce("sum", ctx.b.unary(Op::kExp, centred), dims, true);
  ctx.set(0, ctx.b.sub(centred, ctx.b.unary(Op::kLog, sum)));
}

// One at the first maximum, zero elsewhere.
void hardmax(NodeContext& ctx) {
  const Shape shape = ctx.shape(0);
  const DType type = ctx.dtype(0);
  const Ints dims = softmax_dims(ctx);
  if (dims.empty()) return ctx.set(0, ctx.b.full(type, shape, 1));
  Shape joined(shape.begin(), shape.begin() + dims[0]);
  joined.push_back(element_count({shape.begin() + dims[0], shape.begin() + dims.back() + 1}));
  joined.insert(joined.end(), shape.begin() + dims.back() + 1, shape.end());
  const ValueId x = ctx.b.reshape(ctx.in(0), joined);
  const ValueId top = ctx.b.emit(Op::kArgReduce, {x}, {{"kind", "max"}, {"dim", dims[0]}, {"last", int64_t{0}}});
  const ValueId index = ctx.b.iota(DType::kI64, joined, dims[0]);
  const ValueId hit = ctx.b.binary(Op::kEq, index, unsqueeze(ctx.b, top, {dims[0]}));
  ctx.set(0, ctx.b.reshape(ctx.b.cast(hit, type), shape));
}

}  // namespace

std::span<const OpHandler> normalization_ops() {
  static constexpr std::array kTable = {
      OpHandler{"", "BatchNormalization", 1, kAnyVersion, batch_norm},
      OpHandler{"", "GroupNormalization", 18, kAnyVersion, group_norm},
      OpHandler{"", "Hardmax", 1, kAnyVersion, hardmax},
      OpHandler{"", "InstanceNormalization", 1, kAnyVersion, instance_norm},
      OpHandler{"", "LRN", 1, kAnyVersion, lrn},
      // ONNX Runtime writes it into models of older opsets, too.
      OpHandler{"", "LayerNormalization", 1, kAnyVersion, layer_norm},
      OpHandler{"", "LogSoftmax", 1, kAnyVersion, log_softmax},
      OpHandler{"", "LpNormalization", 1, kAnyVersion, lp_norm},
      OpHandler{"", "MeanVarianceNormalization", 9, kAnyVersion, mean_variance_norm},
      OpHandler{"", "RMSNormalization", 23, kAnyVersion, rms_norm},
      OpHandler{"", "Softmax", 1, kAnyVersion, softmax},
  };
  return kTable;
}

}  // namespace heddle::onnx
