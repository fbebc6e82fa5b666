#include <algorithm>
#include <array>
#include <cmath>

#include "frontend/onnx/lowering/op_helpers.h"
#include "frontend/onnx/op_registry.h"
#include "ir/reference/array.h"

namespace heddle::onnx {
namespace {

void identity(NodeContext& ctx) {
  ctx.set(0, ctx.value(0));
}

// The shape of a tensor or of a text constant.
Shape shape_of_input(NodeContext& ctx, size_t i) {
  return ctx.value(i).kind() == Value::Kind::kStrings ? ctx.value(i).text().shape() : ctx.shape(i);
}

void constant(NodeContext& ctx) {
  if (ctx.has_attr("value")) {
    const Tensor value = ctx.attr_tensor("value");
    ctx.set(0, value.dtype() == DType::kString ? Value::strings(value) : Value(ctx.b.constant(value)));
  } else if (ctx.has_attr("value_float")) {
    ctx.set(0, ctx.b.scalar(DType::kF32, ctx.attr_float("value_float")));
  } else if (ctx.has_attr("value_floats")) {
    const std::vector<double> values = ctx.attr_floats("value_floats");
    ctx.set(0, real_constant(ctx.b, DType::kF32, {static_cast<int64_t>(values.size())}, values));
  } else if (ctx.has_attr("value_int")) {
    ctx.set(0, int_constant(ctx.b, {}, {ctx.attr_int("value_int")}));
  } else if (ctx.has_attr("value_ints")) {
    ctx.set(0, ctx.b.ints(ctx.attr_ints("value_ints")));
  } else if (ctx.has_attr("value_string")) {
    ctx.set(0, Value::strings(Tensor::of_strings({}, {ctx.attr_string("value_string")})));
  } else if (ctx.has_attr("value_strings")) {
    std::vector<std::string> values = ctx.attr_strings("value_strings");
    const auto count = static_cast<int64_t>(values.size());
    ctx.set(0, Value::strings(Tensor::of_strings({count}, std::move(values))));
  } else if (ctx.has_attr("sparse_value")) {
    ctx.set(0, ctx.b.constant(ctx.attr_sparse_tensor("sparse_value")));
  } else {
    ctx.invalid("the constant has no value");
  }
}

// An extent counted from the end, clamped to [0, rank].
int64_t clamp_axis(int64_t axis, int64_t rank) {
  return std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
}

void shape(NodeContext& ctx) {
  const Shape full = shape_of_input(ctx, 0);
  const auto rank = static_cast<int64_t>(full.size());
  const int64_t start = clamp_axis(ctx.attr_int("start", 0), rank);
  const int64_t end = std::max(start, clamp_axis(ctx.attr_int("end", rank), rank));
  ctx.set(0, ctx.b.ints({full.begin() + start, full.begin() + end}));
}

void size(NodeContext& ctx) {
  ctx.set(0, int_constant(ctx.b, {}, {element_count(shape_of_input(ctx, 0))}));
}

void reshape(NodeContext& ctx) {
  const Shape from = ctx.shape(0);
  Shape to = ctx.version() < 5 ? ctx.attr_ints("shape") : ctx.constant_ints(1);
  const bool allow_zero = ctx.attr_int("allowzero", 0) != 0;
  int64_t known = 1;
  std::optional<size_t> inferred;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] == 0 && !allow_zero) {
      if (i >= from.size()) ctx.invalid(fmt::format("dimension {} is copied from an input of rank {}", i, from.size()));
      to[i] = from[i];
    }
    if (to[i] == -1) {
      if (inferred) ctx.invalid("two dimensions are -1");
      inferred = i;
    } else if (to[i] < 0 || __builtin_mul_overflow(known, to[i], &known)) {
      ctx.invalid("the target shape " + to_string(to) + " is not valid");
    }
  }
  const int64_t total = element_count(from);
  if (inferred) {
    if (known == 0 ? total != 0 : total % known != 0) {
      ctx.invalid(fmt::format("{} elements do not fill the shape {}", total, to_string(to)));
    }
    to[*inferred] = known == 0 ? 0 : total / known;
  }
  if (element_count(to) != total) {
    ctx.invalid(fmt::format("{} elements do not fill the shape {}", total, to_string(to)));
  }
  ctx.set(0, ctx.b.reshape(ctx.in(0), std::move(to)));
}

void flatten(NodeContext& ctx) {
  const Shape from = ctx.shape(0);
  const auto rank = static_cast<int64_t>(from.size());
  int64_t axis = ctx.attr_int("axis", 1);
  if (axis < -rank || axis > rank) ctx.invalid(fmt::format("axis {} is outside a tensor of rank {}", axis, rank));
  if (axis < 0) axis += rank;
  const Shape to = {element_count({from.begin(), from.begin() + axis}),
                    element_count({from.begin() + axis, from.end()})};
  ctx.set(0, ctx.b.reshape(ctx.in(0), to));
}

// Axes are an attribute before opset 13 and an input since.
std::optional<Ints> axes_of(NodeContext& ctx) {
  if (ctx.version() < 13) {
    if (!ctx.has_attr("axes")) return std::nullopt;
    return ctx.attr_ints("axes");
  }
  if (!ctx.has(1)) return std::nullopt;
  return ctx.constant_ints(1);
}

void squeeze(NodeContext& ctx) {
  const Shape from = ctx.shape(0);
  std::optional<Ints> axes = axes_of(ctx);
  if (axes) axes = ctx.axes(*axes, static_cast<int64_t>(from.size()));
  Shape to;
  for (size_t i = 0; i < from.size(); ++i) {
    const bool named = axes && std::binary_search(axes->begin(), axes->end(), static_cast<int64_t>(i));
    if (named && from[i] != 1) ctx.invalid(fmt::format("dimension {} has extent {}, not 1", i, from[i]));
    if (!(axes ? named : from[i] == 1)) to.push_back(from[i]);
  }
  ctx.set(0, ctx.b.reshape(ctx.in(0), std::move(to)));
}

void unsqueeze_op(NodeContext& ctx) {
  Shape to = ctx.shape(0);
  const std::optional<Ints> given = axes_of(ctx);
  if (!given) ctx.invalid("the axes are missing");
  const Ints axes = ctx.axes(*given, static_cast<int64_t>(to.size() + given->size()));
  for (const int64_t axis : axes) to.insert(to.begin() + axis, 1);
  ctx.set(0, ctx.b.reshape(ctx.in(0), std::move(to)));
}

void expand(NodeContext& ctx) {
  const Shape target = ir::broadcast_shapes(ctx.shape(0), ctx.constant_ints(1));
  ctx.set(0, ctx.b.broadcast_to(ctx.in(0), target));
}

// Before opset 6 one dimension is repeated.
Ints repeats_of(NodeContext& ctx) {
  if (ctx.version() >= 6) return ctx.constant_ints(1);
  const auto whole_number = [&](size_t i) { return static_cast<int64_t>(ctx.constant_real(i)); };
  Ints repeats(static_cast<size_t>(ctx.rank(0)), 1);
  repeats[static_cast<size_t>(ctx.axis(whole_number(2), ctx.rank(0)))] = whole_number(1);
  return repeats;
}

// Every dimension d becomes [repeat, d] by broadcast, then the pairs are joined.
void tile(NodeContext& ctx) {
  const Shape from = ctx.shape(0);
  const Ints repeats = repeats_of(ctx);
  if (repeats.size() != from.size()) ctx.invalid("there must be one repeat for each dimension");
  Shape paired, to;
  Ints dims;
  for (size_t i = 0; i < from.size(); ++i) {
    if (repeats[i] < 0) ctx.invalid("a repeat is negative");
    if (repeats[i] != 1) paired.push_back(repeats[i]);
    dims.push_back(static_cast<int64_t>(paired.size()));
    paired.push_back(from[i]);
    int64_t extent = 0;
    if (__builtin_mul_overflow(from[i], repeats[i], &extent)) ctx.invalid("the result is too large");
    to.push_back(extent);
  }
  if (paired.size() == from.size()) return ctx.set(0, ctx.in(0));
  ctx.set(0, ctx.b.reshape(ctx.b.broadcast(ctx.in(0), std::move(paired), std::move(dims)), std::move(to)));
}

void constant_of_shape(NodeContext& ctx) {
  const Shape shape = ctx.constant_ints(0);
  for (const int64_t d : shape) {
    if (d < 0) ctx.invalid("the shape " + to_string(shape) + " has a negative extent");
  }
  ValueId value = ctx.b.scalar(DType::kF32, 0);
  if (ctx.has_attr("value")) {
    const Tensor tensor = ctx.attr_tensor("value");
    if (tensor.size() != 1 || tensor.dtype() == DType::kString) ctx.invalid("the value must be one number");
    value = ctx.b.constant(tensor.reshaped({}));
  }
  ctx.set(0, ctx.b.broadcast_to(value, shape));
}

void range(NodeContext& ctx) {
  const double start = ctx.constant_real(0), limit = ctx.constant_real(1), delta = ctx.constant_real(2);
  if (delta == 0) ctx.invalid("the step is 0");
  const double count = std::max(0.0, std::ceil((limit - start) / delta));
  if (!(count <= 1e12)) ctx.invalid("the range is too long");
  const DType type = ctx.dtype(0);
  // Counted in i64 and f64 respectively so that narrow types do not lose the count.
  const DType wide = is_float(type) ? DType::kF64 : DType::kI64;
  const ValueId index = ctx.b.iota(wide, {static_cast<int64_t>(count)}, 0);
  const auto scalar = [&](size_t i) { return ctx.b.cast(ctx.b.reshape(ctx.in(i), {}), wide); };
  ctx.set(0, ctx.b.cast(ctx.b.add(ctx.b.mul(index, scalar(2)), scalar(0)), type));
}

void eye_like(NodeContext& ctx) {
  const Shape shape = ctx.shape(0);
  if (shape.size() != 2) ctx.invalid("the input must be a matrix");
  const DType type = ctx.attr_dtype("dtype", ctx.dtype(0));
  const ValueId row = ctx.b.iota(DType::kI64, shape, 0), column = ctx.b.iota(DType::kI64, shape, 1);
  const ValueId shift = int_constant(ctx.b, {}, {ctx.attr_int("k", 0)});
  ctx.set(0, ctx.b.cast(ctx.b.binary(Op::kEq, ctx.b.add(row, shift), column), type));
}

void dropout(NodeContext& ctx) {
  require_inference(ctx);
  const ValueId x = ctx.in(0);
  const Shape shape = ctx.shape(0);
  bool training = false;
  double ratio = 0.5;
  if (ctx.version() >= 12) {
    training = ctx.has(2) && ctx.constant_int(2) != 0;
    if (ctx.has(1) && training) ratio = ctx.constant_real(1);
  }
  if (!training || ratio == 0) {
    ctx.set(0, x);
    if (ctx.wants(1)) ctx.set(1, ctx.b.full(ctx.version() < 10 ? ctx.dtype(0) : DType::kBool, shape, 1));
    return;
  }
  const int64_t seed = ctx.attr_int("seed", static_cast<int64_t>(ctx.default_seed()));
  const ValueId draw =
      ctx.b.emit(Op::kRandom, {}, {{"kind", "uniform"}, {"dtype", DType::kF32}, {"shape", shape}, {"seed", seed}});
  const ValueId kept = ctx.b.binary(Op::kGe, draw, ratio);
  const ValueId scaled = ctx.b.binary(Op::kMul, x, 1 / (1 - ratio));
  ctx.set(0, ctx.b.select(kept, scaled, ctx.b.scalar(ctx.dtype(0), 0)));
  ctx.set(1, kept);
}

}  // namespace

std::span<const OpHandler> shape_ops() {
  static constexpr std::array kTable = {
      OpHandler{"", "Constant", 1, kAnyVersion, constant},
      OpHandler{"", "ConstantOfShape", 9, kAnyVersion, constant_of_shape},
      OpHandler{"", "Dropout", 1, kAnyVersion, dropout},
      OpHandler{"", "Expand", 8, kAnyVersion, expand, true},
      OpHandler{"", "EyeLike", 9, kAnyVersion, eye_like},
      OpHandler{"", "Flatten", 1, kAnyVersion, flatten, true},
      OpHandler{"", "Identity", 1, kAnyVersion, identity},
      OpHandler{"", "Range", 11, kAnyVersion, range},
      OpHandler{"", "Reshape", 1, kAnyVersion, reshape, true},
      OpHandler{"", "Shape", 1, kAnyVersion, shape},
      OpHandler{"", "Size", 1, kAnyVersion, size},
      OpHandler{"", "Squeeze", 1, kAnyVersion, squeeze, true},
      OpHandler{"", "Tile", 1, kAnyVersion, tile, true},
      OpHandler{"", "Unsqueeze", 1, kAnyVersion, unsqueeze_op, true},
  };
  return kTable;
}

}  // namespace heddle::onnx
