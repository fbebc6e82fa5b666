#include "lang/cpu/pending.h"

#include <algorithm>

namespace heddle::lang::cpu {

bool PendingOps::exceeds(const Op& op) {
  int count = 1;
  for (auto operand = op.operands.begin(); operand != op.operands.end() && count <= kMost; ++operand) {
    const bool again = std::find(op.operands.begin(), operand, *operand) != operand;
    if (!again && is_pending(*operand)) count += counts_[static_cast<size_t>(*operand)];
  }
  // Ops that several operands share have been counted more than once.
  if (count > kMost) count = counted(op);
  for (const ValueId result : op.results) counts_[static_cast<size_t>(result)] = count;
  return count > kMost;
}

int PendingOps::counted(const Op& op) {
  ++walk_;
  int count = 0;
  std::vector<const Op*> open{&op};
  while (!open.empty() && count <= kMost) {
    const Op& next = *open.back();
    open.pop_back();
    ++count;
    for (const ValueId operand : next.operands) {
      int& walk = walks_[static_cast<size_t>(operand)];
      const Op* const definer = state_.uses.definer(operand);
      if (walk == walk_ || definer == nullptr || !is_pending(operand)) continue;
      walk = walk_;
      open.push_back(definer);
    }
  }
  return count;
}

}  // namespace heddle::lang::cpu
