#include <array>
#include <cmath>

#include "frontend/onnx/lowering/op_helpers.h"
#include "frontend/onnx/op_registry.h"

// Operators of ONNX Runtime that its optimiser writes into saved models.
namespace heddle::onnx {
namespace {

void fused_gelu(NodeContext& ctx) {
  ctx.set(0, gelu(ctx.b, ctx.in(0), false));
}

void bias_gelu(NodeContext& ctx) {
  ctx.set(0, gelu(ctx.b, ctx.b.add(ctx.in(0), ctx.in(1)), false));
}

void fast_gelu(NodeContext& ctx) {
  ctx.set(0, gelu(ctx.b, ctx.has(1) ? ctx.b.add(ctx.in(0), ctx.in(1)) : ctx.in(0), true));
}

void quick_gelu(NodeContext& ctx) {
  const ValueId x = ctx.in(0);
  ctx.set(0, ctx.b.mul(x, ctx.b.sigmoid(ctx.b.binary(Op::kMul, x, ctx.attr_float("alpha", 1.702f)))));
}

void fused_matmul(NodeContext& ctx) {
  if (ctx.attr_int("transBatchA", 0) != 0 || ctx.attr_int("transBatchB", 0) != 0) {
    ctx.unsupported("transBatchA and transBatchB are not supported");
  }
  const auto operand = [&](size_t i, const char* attribute) {
    const int64_t rank = ctx.rank(i);
    if (ctx.attr_int(attribute, 0) == 0 || rank < 2) return ctx.in(i);
    return move_axis(ctx.b, ctx.in(i), rank - 1, rank - 2);
  };
  const ValueId a = operand(0, "transA"), b = operand(1, "transB");
  const ValueId y = ctx.b.matmul(a, b);
  const double alpha = ctx.attr_float("alpha", 1);
  ctx.set(0, alpha == 1 ? y : ctx.b.binary(Op::kMul, y, alpha));
}

ValueId activate(NodeContext& ctx, ValueId x, const std::string& name, const std::vector<double>& p) {
  ir::Builder& b = ctx.b;
  const auto parameter = [&](size_t i, double fallback) { return i < p.size() ? p[i] : fallback; };
  if (name.empty()) return x;
  if (name == "Relu") return b.binary(Op::kMax, x, 0.0);
  if (name == "Sigmoid") return b.sigmoid(x);
  if (name == "Tanh") return b.unary(Op::kTanh, x);
  if (name == "LeakyRelu") {
    return b.select(b.binary(Op::kLt, x, 0.0), b.binary(Op::kMul, x, parameter(0, 0.01f)), x);
  }
  if (name == "Clip") {
    return b.binary(Op::kMin, b.binary(Op::kMax, x, parameter(0, -HUGE_VAL)), parameter(1, HUGE_VAL));
  }
  if (name == "HardSigmoid") {
    const ValueId line = b.binary(Op::kAdd, b.binary(Op::kMul, x, parameter(0, 0.2f)), parameter(1, 0.5));
    return b.binary(Op::kMin, b.binary(Op::kMax, line, 0.0), 1.0);
  }
  ctx.unsupported("the activation '" + name + "' is not supported");
}

// A standard operator, then an optional addend (FusedConv's fourth input), then an activation.
template <bool kConv>
void fused_contraction(NodeContext& ctx) {
  find_handler("", kConv ? "Conv" : "Gemm", kNewestOpset)->lower(ctx);
  ValueId y = ctx.outputs().at(0).tensor();
  if (kConv && ctx.has(3)) y = ctx.b.add(y, ctx.in(3));
  std::vector<double> parameters = ctx.attr_floats("activation_params");
  for (const char* name : {"activation_alpha", "activation_beta"}) {
    if (ctx.has_attr(name)) parameters.push_back(ctx.attr_float(name));
  }
  ctx.set(0, activate(ctx, y, ctx.attr_string("activation", ""), parameters));
}

// x / rms(x) * gamma, or the normal form with mean and beta.
ValueId scaled_norm(NodeContext& ctx, ValueId x, size_t gamma, size_t beta, bool simplified, int64_t axis) {
  const int64_t rank = ctx.b.rank(x);
  const Ints dims = int_range(rank - axis, axis);
  const DType type = ctx.b.dtype(x), wide = wide_dtype(type);
  const double epsilon = ctx.attr_float("epsilon", simplified ? 1e-6f : 1e-5f);
  const ValueId w = ctx.b.cast(x, wide);
  ValueId y;
  if (simplified) {
    const ValueId power = ctx.b.mean(square(ctx.b, w), dims, true);
    y = ctx.b.mul(w, ctx.b.unary(Op::kRsqrt, ctx.b.binary(Op::kAdd, power, epsilon)));
  } else {
    y = normalize(ctx.b, w, dims, epsilon).value;
  }
  y = ctx.b.mul(y, ctx.b.cast(ctx.in(gamma), wide));
  if (!simplified && ctx.has(beta)) y = ctx.b.add(y, ctx.b.cast(ctx.in(beta), wide));
  return ctx.b.cast(y, type);
}

void simplified_layer_norm(NodeContext& ctx) {
  if (ctx.wants(1)) ctx.unsupported("its second output is not supported");
  ctx.set(0, scaled_norm(ctx, ctx.in(0), 1, 2, true, ctx.axis(ctx.attr_int("axis", -1), ctx.rank(0))));
}

// Inputs: x, skip, gamma, beta (not in the simplified form), bias. Output 3 is the sum.
template <bool kSimplified>
void skip_layer_norm(NodeContext& ctx) {
  if (ctx.wants(1) || ctx.wants(2)) ctx.unsupported("its mean and deviation are not supported as outputs");
  ValueId sum = ctx.b.add(ctx.in(0), ctx.in(1));
  const size_t bias = kSimplified ? 3 : 4;
  if (ctx.has(bias)) sum = ctx.b.add(sum, ctx.in(bias));
  ctx.set(0, scaled_norm(ctx, sum, 2, 3, kSimplified, ctx.b.rank(sum) - 1));
  ctx.set(3, sum);
}

// Statistics over groups of the channels, which are the last dimension unless the model says otherwise.
void group_norm(NodeContext& ctx, ValueId x) {
  ir::Builder& b = ctx.b;
  const bool last = ctx.attr_int("channels_last", 1) != 0;
  const DType type = b.dtype(x), wide = wide_dtype(type);
  const Shape shape = b.shape(x);
  const int64_t groups = ctx.attr_int("groups"), channel = last ? static_cast<int64_t>(shape.size()) - 1 : 1;
  if (shape.size() < 3 || groups < 1 || shape[static_cast<size_t>(channel)] % groups != 0) {
    ctx.invalid("the channels do not split into groups");
  }
  Shape grouped = shape;
  grouped[static_cast<size_t>(channel)] /= groups;
  grouped.insert(grouped.begin() + channel, groups);
  Ints dims;
  for (int64_t d = 1; d < static_cast<int64_t>(grouped.size()); ++d) {
    if (d != channel) dims.push_back(d);
  }
  const Normalized n = normalize(b, b.reshape(b.cast(x, wide), grouped), dims, ctx.attr_float("epsilon", 1e-5f));
  const auto spread = [&](size_t i) {
    Shape one(shape.size(), 1);
    one[static_cast<size_t>(channel)] = shape[static_cast<size_t>(channel)];
    return b.reshape(b.cast(ctx.in(i), wide), one);
  };
  ValueId y = b.add(b.mul(b.reshape(n.value, shape), spread(1)), spread(2));
  if (ctx.attr_int("activation") != 0) y = b.mul(y, b.sigmoid(y));
  ctx.set(0, b.cast(y, type));
}

void plain_group_norm(NodeContext& ctx) {
  group_norm(ctx, ctx.in(0));
}

// Inputs: x, gamma, beta, skip, bias. Output 1 is the sum.
void skip_group_norm(NodeContext& ctx) {
  ir::Builder& b = ctx.b;
  if (ctx.attr_int("channels_last", 1) == 0) ctx.unsupported("channels_last = 0 is not supported");
  const Shape shape = ctx.shape(0);
  ValueId skip = ctx.in(3);
  if (b.rank(skip) == 2 && shape.size() == 4) skip = unsqueeze(b, skip, {1, 2});
  ValueId sum = b.add(ctx.in(0), skip);
  if (ctx.has(4)) sum = b.add(sum, ctx.in(4));
  group_norm(ctx, sum);
  ctx.set(1, sum);
}

void bias_add(NodeContext& ctx) {
  ctx.set(0, ctx.b.add(ctx.b.add(ctx.in(0), ctx.in(1)), ctx.in(2)));
}

// A convolution of x [N, spatial.., C] by weights [M, kernel.., C / group].
void conv_channels_last(NodeContext& ctx) {
  const int64_t last = ctx.rank(0) - 1;
  for (const size_t i : {0, 1}) {
    if (ctx.rank(i) != last + 1 || last < 2) ctx.invalid("operands of equal rank, 3 or more expected");
    ctx.replace_input(i, move_axis(ctx.b, ctx.in(i), last, 1));
  }
  find_handler("", "Conv", kNewestOpset)->lower(ctx);
  ctx.set(0, move_axis(ctx.b, ctx.outputs().at(0).tensor(), 1, last));
}

// The left half times the GELU of the right one.
void bias_split_gelu(NodeContext& ctx) {
  const ValueId x = ctx.b.add(ctx.in(0), ctx.in(1));
  const int64_t last = ctx.b.rank(x) - 1, size = ctx.b.shape(x).back();
  if (size % 2 != 0) ctx.invalid("an odd extent does not split into halves");
  const ValueId gate = gelu(ctx.b, ctx.b.slice_dim(x, last, size / 2, size), false);
  ctx.set(0, ctx.b.mul(ctx.b.slice_dim(x, last, 0, size / 2), gate));
}

void expand_dims(NodeContext& ctx) {
  const int64_t rank = ctx.rank(0) + 1;
  ctx.set(0, unsqueeze(ctx.b, ctx.in(0), {ctx.axis(ctx.constant_int(1), rank)}));
}

// One that the standard took over later.
void microsoft_grid_sample(NodeContext& ctx) {
  find_handler("", "GridSample", 16)->lower(ctx);
}

void microsoft_trilu(NodeContext& ctx) {
  find_handler("", "Trilu", kNewestOpset)->lower(ctx);
}

}  // namespace

std::span<const OpHandler> microsoft_ops() {
  static constexpr std::array kTable = {
      OpHandler{kMicrosoft, "BiasAdd", 1, kAnyVersion, bias_add},
      OpHandler{kMicrosoft, "BiasGelu", 1, kAnyVersion, bias_gelu},
      OpHandler{kMicrosoft, "BiasSplitGelu", 1, kAnyVersion, bias_split_gelu},
      OpHandler{kMicrosoft, "ExpandDims", 1, kAnyVersion, expand_dims},
      OpHandler{kMicrosoft, "FastGelu", 1, kAnyVersion, fast_gelu},
      OpHandler{kMicrosoft, "FusedConv", 1, kAnyVersion, fused_contraction<true>},
      OpHandler{kMicrosoft, "FusedGemm", 1, kAnyVersion, fused_contraction<false>},
      OpHandler{kMicrosoft, "FusedMatMul", 1, kAnyVersion, fused_matmul},
      OpHandler{kMicrosoft, "Gelu", 1, kAnyVersion, fused_gelu},
      OpHandler{kMicrosoft, "GridSample", 1, kAnyVersion, microsoft_grid_sample},
      OpHandler{kMicrosoft, "GroupNorm", 1, kAnyVersion, plain_group_norm},
      OpHandler{kMicrosoft, "NhwcConv", 1, kAnyVersion, conv_channels_last},
      OpHandler{kMicrosoft, "QuickGelu", 1, kAnyVersion, quick_gelu},
      OpHandler{"", "SimplifiedLayerNormalization", 1, kAnyVersion, simplified_layer_norm},
      OpHandler{kMicrosoft, "SkipGroupNorm", 1, kAnyVersion, skip_group_norm},
      OpHandler{kMicrosoft, "SkipLayerNormalization", 1, kAnyVersion, skip_layer_norm<false>},
      OpHandler{kMicrosoft, "SkipSimplifiedLayerNormalization", 1, kAnyVersion, skip_layer_norm<true>},
      OpHandler{kMicrosoft, "TransposeMatMul", 1, kAnyVersion, fused_matmul},
      OpHandler{kMicrosoft, "Trilu", 1, kAnyVersion, microsoft_trilu},
  };
  return kTable;
}

}  // namespace heddle::onnx
