#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "frontend/onnx/lowering/narrow_cast.h"
#include "frontend/onnx/lowering/op_helpers.h"
#include "frontend/onnx/op_registry.h"
#include "ir/reference/array.h"

namespace heddle::onnx {
namespace {

void concat(NodeContext& ctx) {
  const std::vector<ValueId> parts = ctx.tensors();
  if (parts.empty()) ctx.invalid("at least one input is needed");
  const int64_t axis = ctx.version() < 4 ? ctx.attr_int("axis", 1) : ctx.attr_int("axis");
  ctx.set(0, ctx.b.concat(parts, ctx.axis(axis, ctx.rank(0))));
}

void split(NodeContext& ctx) {
  const int64_t axis = ctx.axis(ctx.attr_int("axis", 0), ctx.rank(0));
  const int64_t extent = ctx.shape(0)[static_cast<size_t>(axis)];
  const auto outputs = static_cast<int64_t>(ctx.output_count());
  Ints sizes;
  const bool as_input = ctx.version() >= 13 || ctx.version() < 2;
  if (as_input && ctx.has(1)) {
    sizes = ctx.constant_ints(1);
  } else if (ctx.version() < 13) {
    sizes = ctx.attr_ints("split");
  }
  if (sizes.empty()) {
    const int64_t count = ctx.attr_int("num_outputs", outputs);
    if (count < 1 || count > outputs) ctx.invalid("the number of parts must be that of the outputs");
    if (ctx.version() < 18 && extent % count != 0) ctx.invalid("the dimension does not split into equal parts");
    const int64_t size = (extent + count - 1) / count;
    for (int64_t i = 0, left = extent; i < count; ++i, left -= sizes.back()) sizes.push_back(std::min(size, left));
  }
  if (static_cast<int64_t>(sizes.size()) < outputs) ctx.invalid("there are more outputs than parts");
  int64_t at = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || sizes[i] > extent - at) ctx.invalid("the parts do not fill the dimension");
    ctx.set(i, ctx.b.slice_dim(ctx.in(0), axis, at, at + sizes[i]));
    at += sizes[i];
  }
  if (at != extent) ctx.invalid("the parts do not fill the dimension");
}

struct Range {
  int64_t start = 0, limit = 0, step = 1;
};

// Python's rules; a negative step counts in the reversed dimension.
Range resolve_range(int64_t start, int64_t end, int64_t step, int64_t extent) {
  const auto from_end = [&](int64_t i) { return i < 0 ? (i < -extent ? -1 : i + extent) : i; };
  Range r;
  if (step > 0) {
    r = {std::clamp<int64_t>(from_end(start), 0, extent), std::clamp<int64_t>(from_end(end), 0, extent), step};
  } else {
    const int64_t first = std::clamp<int64_t>(from_end(start), -1, extent - 1);
    const int64_t last = std::clamp<int64_t>(from_end(end), -1, extent - 1);
    r = {extent - 1 - first, extent - 1 - last, step == INT64_MIN ? INT64_MAX : -step};
  }
  r.limit = std::max(r.start, r.limit);
  r.step = std::min(r.step, std::max<int64_t>(1, extent));
  return r;
}

void slice(NodeContext& ctx) {
  const Shape shape = ctx.shape(0);
  const bool as_inputs = ctx.version() >= 10;
  const Ints begin = as_inputs ? ctx.constant_ints(1) : ctx.attr_ints("starts");
  const Ints end = as_inputs ? ctx.constant_ints(2) : ctx.attr_ints("ends");
  Ints axes = as_inputs ? (ctx.has(3) ? ctx.constant_ints(3) : Ints{}) : ctx.attr_ints("axes");
  if (axes.empty()) axes = int_range(static_cast<int64_t>(begin.size()));
  const Ints steps = as_inputs && ctx.has(4) ? ctx.constant_ints(4) : Ints(begin.size(), 1);
  if (end.size() != begin.size() || axes.size() != begin.size() || steps.size() != begin.size()) {
    ctx.invalid("starts, ends, axes and steps differ in length");
  }
  ctx.axes(axes, ctx.rank(0));
  Ints starts(shape.size(), 0), limits = shape, strides(shape.size(), 1), reversed;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(ctx.axis(axes[i], ctx.rank(0)));
    if (steps[i] == 0) ctx.invalid("a step is 0");
    if (steps[i] < 0) reversed.push_back(static_cast<int64_t>(axis));
    const Range r = resolve_range(begin[i], end[i], steps[i], shape[axis]);
    starts[axis] = r.start;
    limits[axis] = r.limit;
    strides[axis] = r.step;
  }
  std::sort(reversed.begin(), reversed.end());
  ValueId x = ctx.in(0);
  if (!reversed.empty()) x = ctx.b.emit(Op::kReverse, {x}, {{"dims", reversed}});
  ctx.set(0, ctx.b.slice(x, std::move(starts), std::move(limits), std::move(strides)));
}

struct Padding {
  Ints low, high;
};

Padding padding_of(NodeContext& ctx) {
  const auto rank = static_cast<size_t>(ctx.rank(0));
  const Ints pads = ctx.version() < 11 ? ctx.attr_ints(ctx.version() < 2 ? "paddings" : "pads") : ctx.constant_ints(1);
  const Ints axes = ctx.version() >= 18 && ctx.has(3) ? ctx.constant_ints(3) : int_range(ctx.rank(0));
  ctx.axes(axes, ctx.rank(0));
  if (pads.size() != 2 * axes.size()) ctx.invalid("pads must hold two numbers for each axis");
  Padding p{Ints(rank, 0), Ints(rank, 0)};
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(ctx.axis(axes[i], ctx.rank(0)));
    p.low[axis] = pads[i];
    p.high[axis] = pads[axes.size() + i];
  }
  return p;
}

// The part of one dimension that a Pad keeps, and the padding around it.
struct PaddedExtent {
  int64_t start = 0, limit = 0, low = 0, high = 0;
};

// Negative amounts crop. Position i of the result is position i - low of the input, so a crop larger than the input
// leaves only padding, shortened by the amount on the other side.
PaddedExtent padded_extent(NodeContext& ctx, int64_t extent, int64_t low, int64_t high) {
  int64_t result = 0;
  if (__builtin_add_overflow(extent, low, &result) || __builtin_add_overflow(result, high, &result) || result < 0) {
    ctx.invalid(
        fmt::format("pads of {} and {} make a dimension of extent {} a negative or too large one", low, high, extent));
  }
  const auto cut = [&](int64_t amount) { return amount < 0 ? -std::max(amount, -extent) : 0; };
  const PaddedExtent p{cut(low), extent - cut(high), std::max<int64_t>(low, 0), std::max<int64_t>(high, 0)};
  return p.start < p.limit ? p : PaddedExtent{0, 0, 0, result};
}

void pad(NodeContext& ctx) {
  const std::string mode = ctx.attr_string("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap") {
    ctx.invalid("mode '" + mode + "' is unknown");
  }
  ValueId value = ctx.b.scalar(ctx.dtype(0), ctx.version() < 11 ? ctx.attr_float("value", 0) : 0);
  if (ctx.version() >= 11 && ctx.has(2)) {
    if (element_count(ctx.shape(2)) != 1) ctx.invalid("the padding value must be one number");
    value = ctx.b.reshape(ctx.in(2), {});
  }
  const Padding wanted = padding_of(ctx);
  Ints starts, limits, low, high;
  for (size_t i = 0; i < wanted.low.size(); ++i) {
    const PaddedExtent p = padded_extent(ctx, ctx.shape(0)[i], wanted.low[i], wanted.high[i]);
    if (mode != "constant" && p.start == p.limit && p.high > 0) {
      ctx.invalid(fmt::format("mode '{}' repeats elements of dimension {}, of which the pads {} and {} leave none",
                              mode, i, wanted.low[i], wanted.high[i]));
    }
    starts.push_back(p.start);
    limits.push_back(p.limit);
    low.push_back(p.low);
    high.push_back(p.high);
  }
  const ValueId cropped = ctx.b.slice(ctx.in(0), std::move(starts), std::move(limits));
  ctx.set(0, ctx.b.emit(Op::kPad, {cropped, value}, {{"low", low}, {"high", high}, {"mode", mode}}));
}

void center_crop_pad(NodeContext& ctx) {
  const Ints target = ctx.constant_ints(1);
  const Ints axes = ctx.attr_ints("axes", int_range(ctx.rank(0)));
  ctx.axes(axes, ctx.rank(0));
  if (axes.size() != target.size()) ctx.invalid("there must be one extent for each axis");
  Ints starts(static_cast<size_t>(ctx.rank(0)), 0), limits = ctx.shape(0), low = starts, high = starts;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(ctx.axis(axes[i], ctx.rank(0)));
    const int64_t extent = limits[axis];
    if (target[i] < 0) ctx.invalid("an extent is negative");
    if (target[i] < extent) {
      starts[axis] = (extent - target[i]) / 2;
      limits[axis] = starts[axis] + target[i];
    } else {
      low[axis] = (target[i] - extent) / 2;
      high[axis] = target[i] - extent - low[axis];
    }
  }
  const ValueId zero = ctx.b.scalar(ctx.dtype(0), 0);
  ctx.set(0, ctx.b.pad(ctx.b.slice(ctx.in(0), starts, limits), zero, low, high));
}

void transpose(NodeContext& ctx) {
  Ints perm = ctx.attr_ints("perm");
  if (!ctx.has_attr("perm")) {
    perm = int_range(ctx.rank(0));
    std::reverse(perm.begin(), perm.end());
  }
  ctx.set(0, ctx.b.transpose(ctx.in(0), std::move(perm)));
}

void depth_to_space(NodeContext& ctx) {
  const Shape s = ctx.shape(0);
  const int64_t block = ctx.attr_int("blocksize");
  if (s.size() != 4 || block < 1 || block > (1 << 20) || s[1] % (block * block) != 0) {
    ctx.invalid("the channels do not split into blocks");
  }
  const int64_t depth = s[1] / (block * block);
  const std::string mode = ctx.attr_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") ctx.invalid("mode must be DCR or CRD");
  const bool depth_first = mode == "DCR";
  const Shape split =
      depth_first ? Shape{s[0], block, block, depth, s[2], s[3]} : Shape{s[0], depth, block, block, s[2], s[3]};
  const Ints perm = depth_first ? Ints{0, 3, 4, 1, 5, 2} : Ints{0, 1, 4, 2, 5, 3};
  const ValueId moved = ctx.b.transpose(ctx.b.reshape(ctx.in(0), split), perm);
  ctx.set(0, ctx.b.reshape(moved, {s[0], depth, s[2] * block, s[3] * block}));
}

void space_to_depth(NodeContext& ctx) {
  const Shape s = ctx.shape(0);
  const int64_t block = ctx.attr_int("blocksize");
  if (s.size() != 4 || block < 1 || block > (1 << 20) || s[2] % block != 0 || s[3] % block != 0) {
    ctx.invalid("the image does not split into blocks");
  }
  const ValueId x = ctx.b.reshape(ctx.in(0), {s[0], s[1], s[2] / block, block, s[3] / block, block});
  const ValueId moved = ctx.b.transpose(x, {0, 3, 5, 1, 2, 4});
  ctx.set(0, ctx.b.reshape(moved, {s[0], s[1] * block * block, s[2] / block, s[3] / block}));
}

void trilu(NodeContext& ctx) {
  const Shape shape = ctx.shape(0);
  const auto rank = static_cast<int64_t>(shape.size());
  if (rank < 2) ctx.invalid("the input must be a matrix or a batch of them");
  const bool upper = ctx.attr_int("upper", 1) != 0;
  const ValueId row = ctx.b.iota(DType::kI64, shape, rank - 2), column = ctx.b.iota(DType::kI64, shape, rank - 1);
  const ValueId k = ctx.has(1) ? ctx.b.reshape(ctx.in(1), {}) : int_constant(ctx.b, {}, {0});
  const ValueId distance = ctx.b.sub(column, row);
  const ValueId kept = ctx.b.binary(upper ? Op::kGe : Op::kLe, distance, ctx.b.cast(k, DType::kI64));
  ctx.set(0, ctx.b.select(kept, ctx.in(0), ctx.b.scalar(ctx.dtype(0), 0)));
}

void reverse_sequence(NodeContext& ctx) {
  const int64_t batch = ctx.attr_int("batch_axis", 1), time = ctx.attr_int("time_axis", 0);
  if (ctx.rank(0) < 2 || batch + time != 1 || batch * time != 0) ctx.invalid("the axes must be 0 and 1");
  const ValueId x = move_axis(ctx.b, ctx.in(0), batch, 0);  // [batch, time, ...]
  const Shape shape = ctx.b.shape(x);
  const ValueId step = ctx.b.iota(DType::kI64, {shape[0], shape[1]}, 1);
  const ValueId length = ctx.b.reshape(ctx.b.cast(ctx.in(1), DType::kI64), {shape[0], 1});
  const ValueId mirrored = ctx.b.sub(ctx.b.binary(Op::kSub, length, 1.0), step);
  const ValueId index = ctx.b.select(ctx.b.binary(Op::kLt, step, length), mirrored, step);
  const ValueId result =
      ctx.b.emit(Op::kGatherNd, {x, ctx.b.reshape(index, {shape[0], shape[1], 1})}, {{"batch_dims", int64_t{1}}});
  ctx.set(0, move_axis(ctx.b, result, 0, batch));
}

double parse_real(NodeContext& ctx, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size()) ctx.invalid("'" + text + "' is not a number");
  return value;
}

ValueId text_to_number(NodeContext& ctx, const Tensor& text, DType to) {
  if (is_float(to)) {
    std::vector<double> values;
    for (const std::string& s : text.strings()) values.push_back(parse_real(ctx, s));
    return real_constant(ctx.b, to, text.shape(), std::move(values));
  }
  Ints values;
  for (const std::string& s : text.strings()) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
    const bool whole = error == std::errc() && end == s.data() + s.size();
    values.push_back(whole ? value : static_cast<int64_t>(parse_real(ctx, s)));
  }
  return int_constant(ctx.b, text.shape(), std::move(values), to);
}

Tensor number_to_text(const Tensor& numbers) {
  const ir::Array array = ir::to_array(numbers);
  std::vector<std::string> text;
  for (int64_t i = 0; i < array.size(); ++i) {
    const auto n = static_cast<size_t>(i);
    if (!array.real()) {
      text.push_back(numbers.dtype() == DType::kU64 ? fmt::format("{}", static_cast<uint64_t>(array.i()[n]))
                                                    : fmt::format("{}", array.i()[n]));
    } else if (std::isnan(array.f()[n])) {
      text.emplace_back("NaN");
    } else if (std::isinf(array.f()[n])) {
      text.emplace_back(array.f()[n] < 0 ? "-INF" : "INF");
    } else {
      const bool wide = numbers.dtype() == DType::kF64;
      text.push_back(wide ? fmt::format("{}", array.f()[n]) : fmt::format("{}", static_cast<float>(array.f()[n])));
    }
  }
  return Tensor::of_strings(numbers.shape(), std::move(text));
}

void cast_to(NodeContext& ctx, DType to) {
  const bool from_text = ctx.value(0).kind() == Value::Kind::kStrings;
  if (to == DType::kString) {
    ctx.set(0, Value::strings(from_text ? ctx.value(0).text() : number_to_text(ctx.constant(0))));
  } else if (from_text) {
    ctx.set(0, text_to_number(ctx, ctx.value(0).text(), to));
  } else {
    const bool saturate = ctx.attr_int("saturate", 1) != 0;
    ctx.set(0, onnx_cast(ctx.b, ctx.in(0), to, saturate, ctx.attr_string("round_mode", "up")));
  }
}

// The names of TensorProto.DataType that Cast takes before opset 6.
DType named_dtype(const NodeContext& ctx, std::string name) {
  static constexpr std::pair<std::string_view, DType> kNames[] = {
      {"FLOAT", DType::kF32},  {"UINT8", DType::kU8},    {"INT8", DType::kI8},    {"UINT16", DType::kU16},
      {"INT16", DType::kI16},  {"INT32", DType::kI32},   {"INT64", DType::kI64},  {"STRING", DType::kString},
      {"BOOL", DType::kBool},  {"FLOAT16", DType::kF16}, {"DOUBLE", DType::kF64}, {"UINT32", DType::kU32},
      {"UINT64", DType::kU64},
  };
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
  for (const auto& [known, dtype] : kNames) {
    if (known == name) return dtype;
  }
  ctx.invalid(fmt::format("attribute 'to' is '{}', which names no element type", name));
}

void cast(NodeContext& ctx) {
  cast_to(ctx, ctx.version() < 6 ? named_dtype(ctx, ctx.attr_string("to")) : dtype_of(ctx.attr_int("to"), ctx.where()));
}

void cast_like(NodeContext& ctx) {
  cast_to(ctx, ctx.value(1).kind() == Value::Kind::kStrings ? DType::kString : ctx.dtype(1));
}

void bit_cast(NodeContext& ctx) {
  ctx.attr_int("to");
  ctx.set(0, ctx.b.emit(Op::kBitcast, {ctx.in(0)}, {{"to", ctx.attr_dtype("to", DType::kF32)}}));
}

}  // namespace

std::span<const OpHandler> tensor_ops() {
  static constexpr std::array kTable = {
      OpHandler{"", "BitCast", 26, kAnyVersion, bit_cast},
      OpHandler{"", "Cast", 1, kAnyVersion, cast},
      OpHandler{"", "CastLike", 15, kAnyVersion, cast_like},
      OpHandler{"", "CenterCropPad", 18, kAnyVersion, center_crop_pad},
      OpHandler{"", "Concat", 1, kAnyVersion, concat, true},
      OpHandler{"", "DepthToSpace", 1, kAnyVersion, depth_to_space},
      OpHandler{"", "Pad", 1, kAnyVersion, pad},
      OpHandler{"", "ReverseSequence", 10, kAnyVersion, reverse_sequence, true},
      OpHandler{"", "Slice", 1, kAnyVersion, slice, true},
      OpHandler{"", "SpaceToDepth", 1, kAnyVersion, space_to_depth},
      OpHandler{"", "Split", 1, kAnyVersion, split, true},
      OpHandler{"", "Transpose", 1, kAnyVersion, transpose, true},
      OpHandler{"", "Trilu", 14, kAnyVersion, trilu},
  };
  return kTable;
}

}  // namespace heddle::onnx
