#include "lang/cuda/prepare.h"

#include <unordered_map>
#include <utility>

namespace heddle::lang::cuda {
namespace {

class Cloner {
 public:
  explicit Cloner(Kernel& kernel) : kernel_(kernel) {
    for_each_op(kernel.body, [&](const Op& op) {
      for (const ValueId v : op.operands) ++uses_[v];
      if (op.code == OpCode::kLoad && op.operands.size() > 1) ++masks_[op.operands[1]];
      const OpInfo& info = info_of(op.code);
      const bool source = op.code == OpCode::kIota || op.code == OpCode::kSplat || op.code == OpCode::kExpandDims ||
                          op.code == OpCode::kBroadcast;
      if ((source || (info.has(kElementwise) && op.regions.empty())) && kernel.type(op.results[0]).is_tile()) {
        cheap_.emplace(op.results[0], op);
      }
    });
  }
  void run(Region& region) {
    std::vector<Op> ops;
    for (Op& op : region.ops) {
      for (Region& inner : op.regions) run(inner);
      if (op.code == OpCode::kExpandDims && is_cheap(op.operands[0], kMostDepth) && is_shared(op.operands[0])) {
        op.operands[0] = clone(op.operands[0], ops);
      }
      // A mask that others use as well would give a load their layout.
      if (op.code == OpCode::kLoad && op.operands.size() > 1 && kernel_.type(op.results[0]).rank() == 2 &&
          is_cheap(op.operands[1], kMostDepth) && uses_[op.operands[1]] > masks_[op.operands[1]]) {
        op.operands[1] = clone(op.operands[1], ops);
      }
      ops.push_back(std::move(op));
    }
    region.ops = std::move(ops);
  }

 private:
  static constexpr int kMostDepth = 8;

  bool is_cheap(ValueId v, int depth) const {
    if (!kernel_.type(v).is_tile()) return true;
    const auto found = cheap_.find(v);
    if (found == cheap_.end() || depth == 0) return false;
    for (const ValueId operand : found->second.operands) {
      if (!is_cheap(operand, depth - 1)) return false;
    }
    return true;
  }
  // Whether others use it as well, or what it is made of.
  bool is_shared(ValueId v) const {
    if (!kernel_.type(v).is_tile()) return false;
    const auto uses = uses_.find(v);
    if (uses != uses_.end() && uses->second > 1) return true;
    for (const ValueId operand : cheap_.at(v).operands) {
      if (is_shared(operand)) return true;
    }
    return false;
  }
  ValueId clone(ValueId v, std::vector<Op>& ops) {
    if (!kernel_.type(v).is_tile()) return v;
    Op copy = cheap_.at(v);
    for (ValueId& operand : copy.operands) operand = clone(operand, ops);
    copy.results[0] = kernel_.add_value(kernel_.type(v), {});
    ops.push_back(copy);
    return ops.back().results[0];
  }

  Kernel& kernel_;
  std::unordered_map<ValueId, int> uses_, masks_;  // by how many operands; as masks of loads
  std::unordered_map<ValueId, Op> cheap_;
};

}  // namespace

void clone_indices(Kernel& kernel) {
  Cloner(kernel).run(kernel.body);
}

}  // namespace heddle::lang::cuda
