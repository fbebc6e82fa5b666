#include "lang/analysis/uses.h"

#include <algorithm>

namespace heddle::lang {

Uses::Uses(const Kernel& kernel)
    : definers_(kernel.values.size()), users_(kernel.values.size()), regions_(kernel.values.size()) {
  for (const Kernel::Parameter& parameter : kernel.parameters) {
    regions_[static_cast<size_t>(parameter.value)] = &kernel.body;
  }
  visit(kernel.body);
  std::sort(orders_.begin(), orders_.end());
}

void Uses::visit(const Region& region) {
  for (const ValueId argument : region.arguments) regions_[static_cast<size_t>(argument)] = &region;
  for (const Op& op : region.ops) {
    orders_.emplace_back(&op, count_++);
    for (const ValueId operand : op.operands) users_[static_cast<size_t>(operand)].push_back(&op);
    for (const ValueId result : op.results) {
      definers_[static_cast<size_t>(result)] = &op;
      regions_[static_cast<size_t>(result)] = &region;
    }
    for (const Region& inner : op.regions) visit(inner);
  }
}

int Uses::order(const Op& op) const {
  return std::lower_bound(orders_.begin(), orders_.end(), std::pair<const Op*, int>(&op, -1))->second;
}

bool has_trait(const Region& region, unsigned traits) {
  bool found = false;
  for_each_op(region, [&](const Op& op) { found = found || (info_of(op.code).traits & traits) != 0; });
  return found;
}

bool is_zero(const Uses& uses, ValueId value) {
  const Op* op = uses.definer(value);
  const auto passes_on = [](OpCode code) {
    return code == OpCode::kSplat || code == OpCode::kBroadcast || code == OpCode::kCast;
  };
  while (op != nullptr && passes_on(op->code)) op = uses.definer(op->operands[0]);
  return op != nullptr && op->code == OpCode::kConstant && op->attributes.find("value")->number == 0;
}

}  // namespace heddle::lang
