#include "ir/ops/elementwise.h"

#include "ir/ops/families.h"
#include "ir/ops/rules.h"

namespace heddle::ir {
namespace {

void require_types(Op op, DType dtype) {
  const unsigned types = types_of(op);
  const bool ints = (types & kInts) != 0, floats = (types & (kFloats | kMath)) != 0, bools = (types & kBooleans) != 0;
  if (ints && floats && bools) return;
  const bool fits = is_float(dtype) ? floats : dtype == DType::kBool ? bools : ints && is_int(dtype);
  const char* const taken = !ints ? "floats" : floats ? "numbers" : bools ? "integers or bool" : "integers";
  require(fits, "{} takes {}, not {}", op, taken, dtype);
}

std::vector<TensorType> infer_unary(const InferContext& c) {
  TensorType type = c.inputs[0];
  require_types(c.op, type.dtype);
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
  require_types(c.op, type.dtype);
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
      return {op, 1, 1, {{"to", AttrKind::kDType}, {"saturate", kInt, false}, {"excess_precision", kInt, false}}, infer_cast, eval_cast};
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
  for (const Op op : elementwise_ops()) table.push_back(describe(op));
  return table;
}

}  // namespace

std::span<const OpSchema> elementwise_schemas() {
  static const std::vector<OpSchema> table = make_table();
  return table;
}

}  // namespace heddle::ir
