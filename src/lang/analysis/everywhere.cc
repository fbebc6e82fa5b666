#include "lang/analysis/everywhere.h"

#include <algorithm>
#include <set>
#include <utility>

namespace heddle::lang {
namespace {

class Conjuncts {
 public:
  Conjuncts(const Kernel& kernel, const IndexAnalysis& indices) : kernel_(kernel), indices_(indices) {}

  bool add(ValueId mask) {
    open_ = {mask};
    while (!open_.empty()) {
      const ValueId next = open_.back();
      open_.pop_back();
      if (seen_.insert(next).second && !add_one(next)) return false;
    }
    return true;
  }
  std::vector<Polynomial> take() { return std::move(least_); }

 private:
  bool add_one(ValueId mask) {
    const Op* const op = indices_.uses().definer(mask);
    if (op == nullptr || !kernel_.type(mask).is_tile()) return false;
    switch (op->code) {
      case OpCode::kAnd:
      case OpCode::kBroadcast:
      case OpCode::kExpandDims:
      case OpCode::kPermute:
        open_.insert(open_.end(), op->operands.rbegin(), op->operands.rend());
        return true;
      default:
        return add_comparison(*op);
    }
  }
  bool add_comparison(const Op& op) {
    const auto order = order_of(op);
    if (!order || !is_signed_int(kernel_.type(op.operands[0]).element)) return false;
    const auto large = indices_.affine(order->larger), small = indices_.affine(order->smaller);
    if (!large || !small) return false;
    Polynomial least = large->base - small->base - Polynomial(order->strict ? 1 : 0);
    const std::vector<int64_t>& shape = kernel_.type(op.operands[0]).shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (large->wraps[d] || small->wraps[d]) return false;
      const std::optional<int64_t> stride = (large->strides[d] - small->strides[d]).constant();
      if (!stride) return false;
      least = least + Polynomial(std::min<int64_t>(0, *stride * (shape[d] - 1)));
    }
    least_.push_back(std::move(least));
    return true;
  }

  const Kernel& kernel_;
  const IndexAnalysis& indices_;
  std::vector<Polynomial> least_;
  std::vector<ValueId> open_;
  std::set<ValueId> seen_;
};

}  // namespace

std::optional<std::vector<Polynomial>> true_everywhere(const Kernel& kernel, const IndexAnalysis& indices,
                                                       ValueId mask) {
  Conjuncts conjuncts(kernel, indices);
  if (!conjuncts.add(mask)) return std::nullopt;
  return conjuncts.take();
}

}  // namespace heddle::lang
