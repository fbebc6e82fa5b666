#include <array>

#include "frontend/onnx/lowering/op_helpers.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {
namespace {

template <Op kOp>
void combine(NodeContext& ctx) {
  const auto [lhs, rhs] = binary_operands(ctx);
  ctx.set(0, ctx.b.binary(kOp, lhs, rhs));
}

// Text is constant, so its comparison is too.
void equal_text(NodeContext& ctx) {
  const Tensor a = ctx.constant(0), b = ctx.constant(1);
  if (a.dtype() != DType::kString || b.dtype() != DType::kString) ctx.invalid("text is compared with numbers");
  const Shape shape = ir::broadcast_shapes(a.shape(), b.shape());
  // Positions rather than texts are broadcast, by the IR.
  const auto positions = [&](const Tensor& t) {
    const ValueId index = int_constant(ctx.b, t.shape(), int_range(t.size()));
    return ctx.b.broadcast_to(index, shape);
  };
  const Tensor at_a = ctx.constant_of(positions(a)), at_b = ctx.constant_of(positions(b));
  Ints same;
  for (int64_t i = 0; i < at_a.size(); ++i) {
    const auto n = static_cast<size_t>(i);
    same.push_back(a.strings()[static_cast<size_t>(at_a.values<int64_t>()[n])] ==
                   b.strings()[static_cast<size_t>(at_b.values<int64_t>()[n])]);
  }
  ctx.set(0, int_constant(ctx.b, shape, std::move(same), DType::kBool));
}

void equal(NodeContext& ctx) {
  if (ctx.value(0).kind() == Value::Kind::kStrings) return equal_text(ctx);
  combine<Op::kEq>(ctx);
}

void logical_not(NodeContext& ctx) {
  ctx.set(0, ctx.b.unary(Op::kNot, ctx.in(0)));
}

void is_nan(NodeContext& ctx) {
  ctx.set(0, ctx.b.unary(Op::kIsNan, ctx.in(0)));
}

void is_inf(NodeContext& ctx) {
  ctx.set(0, ctx.b.emit(
                 Op::kIsInf, {ctx.in(0)},
                 {{"positive", ctx.attr_int("detect_positive", 1)}, {"negative", ctx.attr_int("detect_negative", 1)}}));
}

void where(NodeContext& ctx) {
  ctx.set(0, ctx.b.select(ctx.in(0), ctx.in(1), ctx.in(2)));
}

void bit_shift(NodeContext& ctx) {
  const std::string direction = ctx.attr_string("direction");
  if (direction != "LEFT" && direction != "RIGHT") ctx.invalid("direction must be LEFT or RIGHT");
  ctx.set(0, ctx.b.binary(direction == "LEFT" ? Op::kShl : Op::kShr, ctx.in(0), ctx.in(1)));
}

}  // namespace

std::span<const OpHandler> logic_ops() {
  static constexpr std::array kTable = {
      OpHandler{"", "And", 1, kAnyVersion, combine<Op::kAnd>},
      OpHandler{"", "BitShift", 11, kAnyVersion, bit_shift},
      OpHandler{"", "BitwiseAnd", 18, kAnyVersion, combine<Op::kAnd>},
      OpHandler{"", "BitwiseNot", 18, kAnyVersion, logical_not},
      OpHandler{"", "BitwiseOr", 18, kAnyVersion, combine<Op::kOr>},
      OpHandler{"", "BitwiseXor", 18, kAnyVersion, combine<Op::kXor>},
      OpHandler{"", "Equal", 1, kAnyVersion, equal},
      OpHandler{"", "Greater", 1, kAnyVersion, combine<Op::kGt>},
      OpHandler{"", "GreaterOrEqual", 12, kAnyVersion, combine<Op::kGe>},
      OpHandler{"", "IsInf", 10, kAnyVersion, is_inf},
      OpHandler{"", "IsNaN", 9, kAnyVersion, is_nan},
      OpHandler{"", "Less", 1, kAnyVersion, combine<Op::kLt>},
      OpHandler{"", "LessOrEqual", 12, kAnyVersion, combine<Op::kLe>},
      OpHandler{"", "Not", 1, kAnyVersion, logical_not},
      OpHandler{"", "Or", 1, kAnyVersion, combine<Op::kOr>},
      OpHandler{"", "Where", 9, kAnyVersion, where, true},
      OpHandler{"", "Xor", 1, kAnyVersion, combine<Op::kXor>},
  };
  return kTable;
}

}  // namespace heddle::onnx
