#include "ir/ops/elementwise.h"

#include "ir/ops/families.h"
#include "ir/ops/rules.h"

namespace heddle::ir {
namespace {

enum class Domain { kFloat, kNumber, kIntOrBool, kInt, kAny };

// The operand types that an op accepts.
Domain domain_of(Op op) {
  switch (op) {
    case Op::kNeg:
    case Op::kAbs:
    case Op::kSign:
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kDiv:
    case Op::kRem:
    case Op::kMod:
    case Op::kPow:
    case Op::kMax:
    case Op::kMin:
    case Op::kLt:
    case Op::kLe:
    case Op::kGt:
    case Op::kGe:
      return Domain::kNumber;
    case Op::kNot:
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
      return Domain::kIntOrBool;
    case Op::kShl:
    case Op::kShr:
      return Domain::kInt;
    case Op::kCast:
    case Op::kBitcast:
    case Op::kEq:
    case Op::kNe:
    case Op::kSelect:
      return Domain::kAny;
    default:
      return Domain::kFloat;
  }
}

void require_domain(Op op, DType dtype) {
  switch (domain_of(op)) {
    case Domain::kFloat:
      return require(is_float(dtype), "{} takes floats, not {}", op, dtype);
    case Domain::kNumber:
      return require(is_number(dtype), "{} takes numbers, not {}", op, dtype);
    case Domain::kIntOrBool:
      return require(is_int(dtype) || dtype == DType::kBool, "{} takes integers or bool, not {}", op, dtype);
    case Domain::kInt:
      return require(is_int(dtype), "{} takes integers, not {}", op, dtype);
    case Domain::kAny:
      return;
  }
}

std::vector<TensorType> infer_unary(const InferContext& c) {
  TensorType type = c.inputs[0];
  require_domain(c.op, type.dtype);
  if (c.op == Op::kIsNan || c.op == Op::kIsInf) type.dtype = DType::kBool;
  return {std::move(type)};
}

std::vector<TensorType> infer_cast(const InferContext& c) {
  TensorType type{c.attrs.dtype("to"), c.inputs[0].shape};
  require_type(type);
  return {std::move(type)};
}

std::vector<TensorType> infer_bitcast(const InferContext& c) {
  auto types = infer_cast(c);
  require(bits_of(types[0].dtype) == bits_of(c.inputs[0].dtype), "{} and {} have different element sizes",
          c.inputs[0].dtype, types[0].dtype);
  return types;
}

std::vector<TensorType> infer_binary(const InferContext& c) {
  require(c.inputs[0] == c.inputs[1], "the operands {} and {} must have one dtype and shape", c.inputs[0], c.inputs[1]);
  TensorType type = c.inputs[0];
  require_domain(c.op, type.dtype);
  if (is_comparison(c.op)) type.dtype = DType::kBool;
  return {std::move(type)};
}

std::vector<TensorType> infer_select(const InferContext& c) {
  require(c.inputs[0].dtype == DType::kBool, "the condition must be bool, not {}", c.inputs[0].dtype);
  require(c.inputs[1] == c.inputs[2], "the branches {} and {} must have one dtype and shape", c.inputs[1], c.inputs[2]);
  require(c.inputs[0].shape == c.inputs[1].shape, "the condition's shape {} is not that of the branches, {}",
          c.inputs[0].shape, c.inputs[1].shape);
  return {c.inputs[1]};
}

OpSchema describe(Op op) {
  constexpr auto kInt = AttrKind::kInt;
  switch (op) {
    case Op::kIsInf:
      return {op, 1, 1, {{"positive", kInt}, {"negative", kInt}}, infer_unary, eval_unary};
    case Op::kCast:
      return {op, 1, 1, {{"to", AttrKind::kDType}, {"saturate", kInt, false}}, infer_cast, eval_cast};
    case Op::kBitcast:
      return {op, 1, 1, {{"to", AttrKind::kDType}}, infer_bitcast, eval_bitcast};
    case Op::kSelect:
      return {op, 3, 3, {}, infer_select, eval_select};
    default:
      break;
  }
  if (class_of(op) == OpClass::kUnary) return {op, 1, 1, {}, infer_unary, eval_unary};
  if (op == Op::kMul || op == Op::kDiv) return {op, 2, 2, {{"rounded", kInt, false}}, infer_binary, eval_binary};
  return {op, 2, 2, {}, infer_binary, eval_binary};
}

std::vector<OpSchema> make_table() {
  std::vector<OpSchema> table;
  for (int op = 0; op <= static_cast<int>(Op::kSelect); ++op) table.push_back(describe(static_cast<Op>(op)));
  return table;
}

}  // namespace

std::span<const OpSchema> elementwise_schemas() {
  static const std::vector<OpSchema> table = make_table();
  return table;
}

}  // namespace heddle::ir
