#include "ir/op.h"

#include <array>
#include <vector>

namespace heddle::ir {
namespace {

struct Entry {
  std::string_view name;
  OpClass op_class;
  unsigned users = kGraph;
  std::string_view text = {};
  OpCost cost = OpCost();
  unsigned types = 0;
  Accuracy accuracy = Accuracy::kRounded;
};

constexpr std::array kOps = {
#define HEDDLE_OP(enumerator, name, op_class) Entry{name, OpClass::op_class},
#define HEDDLE_MAP(enumerator, name, op_class, users, text, cost, types, accuracy) \
  Entry{name, OpClass::op_class, users, text, cost, types, Accuracy::accuracy},
#include "ir/ops.def"
};

const Entry& entry(Op op) {
  return kOps[static_cast<size_t>(op)];
}

}  // namespace

std::string_view to_string(Op op) {
  return entry(op).name;
}

std::optional<Op> parse_op(std::string_view name) {
  for (size_t i = 0; i < kOps.size(); ++i) {
    const Entry& e = kOps[i];
    if (e.name == name && (e.users & kGraph) != 0 && e.op_class != OpClass::kTileIr) return static_cast<Op>(i);
  }
  return std::nullopt;
}

std::span<const Op> elementwise_ops() {
  static const std::vector<Op> ops = [] {
    std::vector<Op> found;
    for (size_t i = 0; i < kOps.size(); ++i) {
      if ((kOps[i].users & kGraph) != 0 && is_elementwise(static_cast<Op>(i))) found.push_back(static_cast<Op>(i));
    }
    return found;
  }();
  return ops;
}

OpClass class_of(Op op) {
  return entry(op).op_class;
}

OpCost cost_of(Op op) {
  return entry(op).cost;
}

unsigned types_of(Op op) {
  return entry(op).types;
}

Accuracy accuracy_of(Op op) {
  return entry(op).accuracy;
}

std::string_view text_of(Op op) {
  return entry(op).text;
}

}  // namespace heddle::ir
