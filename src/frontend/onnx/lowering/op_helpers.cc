#include "frontend/onnx/lowering/op_helpers.h"

#include <cmath>
#include <numbers>
#include <numeric>

#include "ir/reference/array.h"

namespace heddle::onnx {

Ints int_range(int64_t count, int64_t first) {
  Ints values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}

ValueId real_constant(ir::Builder& b, DType dtype, Shape shape, std::vector<double> values) {
  // The dtype is mostly that of an operand, which a broken model may have made an integer.
  if (!is_float(dtype)) fail(ErrorCode::kInvalidNode, "", fmt::format("it takes floats, not {}", to_string(dtype)));
  ir::Array array(dtype, std::move(shape));
  HEDDLE_CHECK(static_cast<int64_t>(values.size()) == array.size());
  array.f() = std::move(values);
  return b.constant(ir::to_tensor(array));
}

ValueId int_constant(ir::Builder& b, Shape shape, Ints values, DType dtype) {
  ir::Array array(dtype, std::move(shape));
  HEDDLE_CHECK(static_cast<int64_t>(values.size()) == array.size() && !array.real());
  array.i() = std::move(values);
  return b.constant(ir::to_tensor(array));
}

void check_table(const NodeContext& ctx, const Shape& shape) {
  constexpr int64_t kMost = int64_t{1} << 26;
  if (element_count(shape) <= kMost) return;
  ctx.fail(ErrorCode::kOutOfMemory,
           fmt::format("a table of {} entries would be computed while importing", to_string(shape)),
           "Reduce the input's shape");
}

// A dimension that the model names, or that an operator's rule counts on.
static void check_dimension(const Shape& shape, int64_t dim, int64_t count) {
  if (dim >= 0 && dim < count) return;
  fail(ErrorCode::kInvalidNode, "", fmt::format("an operand of shape {} has no dimension {}", to_string(shape), dim));
}

ValueId per_channel(ir::Builder& b, ValueId vector, int64_t rank) {
  Shape shape(static_cast<size_t>(rank), 1);
  check_dimension(shape, 1, rank);
  shape[1] = element_count(b.shape(vector));
  return b.reshape(vector, std::move(shape));
}

Operands binary_operands(const NodeContext& ctx) {
  const Operands given{ctx.in(0), ctx.in(1)};
  if (ctx.version() >= 7) return given;
  const Shape whole = ctx.shape(0), part = ctx.shape(1);
  if (ctx.attr_int("broadcast", 0) == 0) {
    if (whole != part) ctx.invalid("without the attribute broadcast the shapes of both operands must be equal");
    return given;
  }
  Shape shape = part;
  if (ctx.has_attr("axis") && element_count(part) != 1) {
    const int64_t axis = ctx.axis(ctx.attr_int("axis"), ctx.rank(0)), after = ctx.rank(0) - axis - ctx.rank(1);
    if (after < 0)
      ctx.invalid(fmt::format("the second operand has more dimensions than the first one from {} on", axis));
    shape.insert(shape.end(), static_cast<size_t>(after), 1);
  }
  const bool fits = shape.size() <= whole.size() && ir::broadcast_shapes(whole, shape) == whole;
  if (!fits && element_count(part) != 1) ctx.invalid("the second operand does not broadcast to the first one's shape");
  return {given.lhs, ctx.b.reshape(given.rhs, fits ? std::move(shape) : Shape{})};
}

void require_inference(const NodeContext& ctx) {
  if (ctx.version() >= 7 || !ctx.has_attr("is_test") || ctx.attr_int("is_test") != 0) return;
  ctx.unsupported("is_test = 0 asks for the operator's training form");
}

ValueId unsqueeze(ir::Builder& b, ValueId x, const Ints& axes) {
  Shape shape = b.shape(x);
  for (const int64_t axis : axes) {
    check_dimension(shape, axis, static_cast<int64_t>(shape.size()) + 1);
    shape.insert(shape.begin() + axis, 1);
  }
  return b.reshape(x, std::move(shape));
}

ValueId move_axis(ir::Builder& b, ValueId x, int64_t axis, int64_t to) {
  Ints perm = int_range(b.rank(x));
  check_dimension(b.shape(x), axis, b.rank(x));
  check_dimension(b.shape(x), to, b.rank(x));
  perm.erase(perm.begin() + axis);
  perm.insert(perm.begin() + to, axis);
  return b.transpose(x, std::move(perm));
}

DType wide_dtype(DType dtype) {
  return dtype == DType::kF64 ? DType::kF64 : DType::kF32;
}

ValueId square(ir::Builder& b, ValueId x) {
  return b.mul(x, x);
}

ValueId softplus(ir::Builder& b, ValueId x) {
  const ValueId tail = b.unary(Op::kLog1p, b.unary(Op::kExp, b.unary(Op::kNeg, b.unary(Op::kAbs, x))));
  return b.add(b.binary(Op::kMax, x, 0.0), tail);
}

ValueId gelu(ir::Builder& b, ValueId x, bool tanh_form) {
  ValueId gate;
  if (tanh_form) {
    const ValueId cubic = b.binary(Op::kMul, b.mul(square(b, x), x), 0.044715);
    gate = b.unary(Op::kTanh, b.binary(Op::kMul, b.add(x, cubic), std::sqrt(2 / std::numbers::pi)));
  } else {
    gate = b.unary(Op::kErf, b.binary(Op::kMul, x, 1 / std::numbers::sqrt2));
  }
  return b.mul(b.binary(Op::kMul, x, 0.5), b.binary(Op::kAdd, gate, 1.0));
}

Normalized normalize(ir::Builder& b, ValueId x, const Ints& dims, double epsilon) {
  Normalized result;
  result.mean = b.mean(x, dims, true);
  const ValueId centred = b.sub(x, result.mean);
  const ValueId variance = b.mean(square(b, centred), dims, true);
  result.inv_std = b.unary(Op::kRsqrt, b.binary(Op::kAdd, variance, epsilon));
  result.value = b.mul(centred, result.inv_std);
  return result;
}

}  // namespace heddle::onnx
