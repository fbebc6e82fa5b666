#include "ir/op.h"

#include <array>

namespace heddle::ir {
namespace {

struct Entry {
  std::string_view name;
  OpClass op_class;
  std::string_view text = {};
  OpCost cost = OpCost();
};

constexpr std::array kOps = {
#define HEDDLE_OP(enumerator, name, op_class) Entry{name, OpClass::op_class},
#define HEDDLE_MAP(enumerator, name, op_class, text, cost) Entry{name, OpClass::op_class, text, cost},
#include "ir/ops.def"
};

}  // namespace

std::string_view to_string(Op op) {
  return kOps[static_cast<size_t>(op)].name;
}

std::optional<Op> parse_op(std::string_view name) {
  for (size_t i = 0; i < kOps.size(); ++i) {
    if (kOps[i].name == name) return static_cast<Op>(i);
  }
  return std::nullopt;
}

OpClass class_of(Op op) {
  return kOps[static_cast<size_t>(op)].op_class;
}

OpCost cost_of(Op op) {
  return kOps[static_cast<size_t>(op)].cost;
}

bool is_costly(Op op) {
  switch (op) {
    case Op::kNeg:
    case Op::kAbs:
    case Op::kSign:
    case Op::kFloor:
    case Op::kCeil:
    case Op::kRound:
    case Op::kTrunc:
    case Op::kAdd:
    case Op::kSub:
    case Op::kMul:
    case Op::kMax:
    case Op::kMin:
    case Op::kSelect:
    case Op::kCast:
    case Op::kBitcast:
    case Op::kIsNan:
    case Op::kIsInf:
    case Op::kNot:
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor:
    case Op::kShl:
    case Op::kShr:
      return false;
    default:
      return !is_comparison(op) && (is_elementwise(op) || op == Op::kRandom);
  }
}

std::string_view text_of(Op op) {
  return kOps[static_cast<size_t>(op)].text;
}

}  // namespace heddle::ir
