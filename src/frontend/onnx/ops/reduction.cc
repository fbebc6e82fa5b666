#include <algorithm>
#include <array>
#include <cmath>

#include "frontend/onnx/lowering/op_helpers.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {
namespace {

// What is done before and after the reduction itself.
enum class Form : uint8_t { kSum, kProd, kMax, kMin, kMean, kL1, kL2, kLogSum, kLogSumExp, kSumSquare };

struct Axes {
  Ints dims;
  bool keep;
  bool identity;  // noop_with_empty_axes: nothing is reduced
};

// Axes are an attribute before opset 18 (ReduceSum: 13) and an input since.
Axes axes_of(NodeContext& ctx, int64_t input_since) {
  Axes result{{}, ctx.attr_int("keepdims", 1) != 0, false};
  const int64_t rank = ctx.rank(0);
  const bool as_input = ctx.version() >= input_since;
  if (as_input ? ctx.has(1) : ctx.has_attr("axes")) {
    result.dims = ctx.axes(as_input ? ctx.constant_ints(1) : ctx.attr_ints("axes"), rank);
  }
  if (result.dims.empty()) {
    result.identity = as_input && ctx.attr_int("noop_with_empty_axes", 0) != 0;
    if (!result.identity) result.dims = int_range(rank);
  }
  return result;
}

ValueId log_sum_exp(ir::Builder& b, ValueId x, const Ints& dims, bool keep) {
  // An infinite maximum would give inf - inf.
  const ValueId top = b.reduce("max", x, dims, true);
  const ValueId finite = b.binary(Op::kLt, b.unary(Op::kAbs, top), HUGE_VAL);
  const ValueId shift = b.select(finite, top, b.scalar(b.dtype(x), 0));
  const ValueId sum = b.reduce("sum", b.unary(Op::kExp, b.sub(x, shift)), dims, true);
  ValueId result = b.add(b.unary(Op::kLog, sum), shift);
  if (keep) return result;
  const Shape kept = b.shape(result);
  Shape shape;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (!std::binary_search(dims.begin(), dims.end(), static_cast<int64_t>(i))) shape.push_back(kept[i]);
  }
  return b.reshape(result, std::move(shape));
}

ValueId reduce_bool(ir::Builder& b, Form form, ValueId x, const Axes& axes) {
  return b.reduce(form == Form::kMax ? "any" : "all", x, axes.dims, axes.keep);
}

ValueId reduce(ir::Builder& b, Form form, ValueId x, const Axes& axes) {
  const auto sum = [&](ValueId v) { return axes.identity ? v : b.reduce("sum", v, axes.dims, axes.keep); };
  if (axes.identity && form != Form::kL1 && form != Form::kL2 && form != Form::kLogSum && form != Form::kSumSquare) {
    return x;
  }
  const DType type = b.dtype(x);
  const auto in_float = [&](auto&& f) {  // roots and logarithms of integers
    const ValueId wide = is_float(type) ? x : b.cast(x, DType::kF64);
    return b.cast(f(wide), type);
  };
  switch (form) {
    case Form::kSum:
      return sum(x);
    case Form::kProd:
      return b.reduce("prod", x, axes.dims, axes.keep);
    case Form::kMax:
    case Form::kMin:
      if (type == DType::kBool) return reduce_bool(b, form, x, axes);
      return b.reduce(form == Form::kMax ? "max" : "min", x, axes.dims, axes.keep);
    case Form::kMean:
      return b.mean(x, axes.dims, axes.keep);
    case Form::kL1:
      return sum(b.unary(Op::kAbs, x));
    case Form::kL2:
      return in_float([&](ValueId v) { return b.unary(Op::kSqrt, sum(square(b, v))); });
    case Form::kLogSum:
      return in_float([&](ValueId v) { return b.unary(Op::kLog, sum(v)); });
    case Form::kLogSumExp:
      return in_float([&](ValueId v) { return log_sum_exp(b, v, axes.dims, axes.keep); });
    case Form::kSumSquare:
      return sum(square(b, x));
  }
  return x;
}

template <Form kForm>
void reduction(NodeContext& ctx) {
  ctx.set(0, reduce(ctx.b, kForm, ctx.in(0), axes_of(ctx, kForm == Form::kSum ? 13 : 18)));
}

template <bool kMax>
void arg_reduce(NodeContext& ctx) {
  const int64_t dim = ctx.axis(ctx.attr_int("axis", 0), ctx.rank(0));
  const ValueId index =
      ctx.b.emit(Op::kArgReduce, {ctx.in(0)},
                 {{"kind", kMax ? "max" : "min"}, {"dim", dim}, {"last", ctx.attr_int("select_last_index", 0)}});
  ctx.set(0, ctx.attr_int("keepdims", 1) != 0 ? unsqueeze(ctx.b, index, {dim}) : index);
}

void top_k(NodeContext& ctx) {
  const int64_t dim = ctx.axis(ctx.attr_int("axis", -1), ctx.rank(0));
  const int64_t k = ctx.version() < 10 ? ctx.attr_int("k") : ctx.constant_int(1);
  const int64_t extent = ctx.shape(0)[static_cast<size_t>(dim)];
  if (k < 0 || k > extent) ctx.invalid(fmt::format("k is {}, the dimension has {} elements", k, extent));
  const std::vector<ValueId> results = ctx.b.emit_all(
      Op::kTopK, {ctx.in(0)},
      {{"k", k}, {"dim", dim}, {"largest", ctx.attr_int("largest", 1)}, {"sorted", ctx.attr_int("sorted", 1)}});
  ctx.set(0, results[0]);
  ctx.set(1, results[1]);
}

}  // namespace

std::span<const OpHandler> reduction_ops() {
  static constexpr std::array kTable = {
      OpHandler{"", "ArgMax", 1, kAnyVersion, arg_reduce<true>},
      OpHandler{"", "ArgMin", 1, kAnyVersion, arg_reduce<false>},
      OpHandler{"", "ReduceL1", 1, kAnyVersion, reduction<Form::kL1>},
      OpHandler{"", "ReduceL2", 1, kAnyVersion, reduction<Form::kL2>},
      OpHandler{"", "ReduceLogSum", 1, kAnyVersion, reduction<Form::kLogSum>},
      OpHandler{"", "ReduceLogSumExp", 1, kAnyVersion, reduction<Form::kLogSumExp>},
      OpHandler{"", "ReduceMax", 1, kAnyVersion, reduction<Form::kMax>},
      OpHandler{"", "ReduceMean", 1, kAnyVersion, reduction<Form::kMean>},
      OpHandler{"", "ReduceMin", 1, kAnyVersion, reduction<Form::kMin>},
      OpHandler{"", "ReduceProd", 1, kAnyVersion, reduction<Form::kProd>},
      OpHandler{"", "ReduceSum", 1, kAnyVersion, reduction<Form::kSum>},
      OpHandler{"", "ReduceSumSquare", 1, kAnyVersion, reduction<Form::kSumSquare>},
      OpHandler{"", "TopK", 1, kAnyVersion, top_k},
  };
  return kTable;
}

}  // namespace heddle::onnx
