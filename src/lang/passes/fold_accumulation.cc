#include "lang/passes/fold_accumulation.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "lang/analysis/uses.h"

namespace heddle::lang {
namespace {

// The product that one side of an addition is, where nothing else needs it.
const Op* product_of(const Uses& uses, ValueId side, const Op& add) {
  const Op* const op = uses.definer(side);
  const bool fits = op != nullptr && op->code == OpCode::kDot && uses.users(side).size() == 1 &&
                    uses.region(side) == uses.region(add.results[0]) && is_zero(uses, op->operands[2]);
  return fits ? op : nullptr;
}

void fold(Region& region, const std::unordered_map<const Op*, Op>& folded, const std::unordered_set<const Op*>& gone) {
  for (Op& op : region.ops) {
    for (Region& inner : op.regions) fold(inner, folded, gone);
    // Its address tells which it was: ops move only below.
    if (const auto found = folded.find(&op); found != folded.end()) op = found->second;
  }
  std::vector<Op> left;
  left.reserve(region.ops.size());
  for (Op& op : region.ops) {
    if (gone.count(&op) == 0) left.push_back(std::move(op));
  }
  region.ops = std::move(left);
}

}  // namespace

void fold_accumulation(Kernel& kernel) {
  const Uses uses(kernel);
  std::unordered_map<const Op*, Op> folded;  // an addition, and the product in its place
  std::unordered_set<const Op*> gone;
  for_each_op(kernel.body, [&](const Op& add) {
    if (add.code != OpCode::kAdd) return;
    for (const size_t side : {1, 0}) {
      const Op* const product = product_of(uses, add.operands[side], add);
      if (product == nullptr) continue;
      Op whole = *product;
      whole.operands[2] = add.operands[1 - side];
      whole.results = add.results;
      folded.emplace(&add, std::move(whole));
      gone.insert(product);
      return;
    }
  });
  if (!folded.empty()) fold(kernel.body, folded, gone);
}

}  // namespace heddle::lang
