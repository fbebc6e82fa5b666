#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace heddle {

// Traverses a directed acyclic graph with numbered nodes depth first. Visits every node once, even if several nodes
// have it as an operand. An explicit stack allows any depth. Each run() skips the nodes that earlier runs visited.
class DagWalk {
 public:
  // `operands(node, next)` calls next(operand) for each operand in order. `enter(node)` is called before the operands.
  // If it returns false, the operands and leave() are skipped. `leave(node)` is called after all operands.
  template <typename Operands, typename Enter, typename Leave>
  void run(uint32_t root, const Operands& operands, const Enter& enter, const Leave& leave) {
    // Callbacks may call run() on this object again. Each nested call uses the stack above `bottom`.
    const size_t bottom = stack_.size();
    stack_.push_back({root, false});
    while (stack_.size() > bottom) {
      const Step step = stack_.back();
      stack_.pop_back();
      if (step.is_done) {
        leave(step.node);
        continue;
      }
      if (!visit(step.node) || !enter(step.node)) continue;
      stack_.push_back({step.node, true});
      const size_t first = stack_.size();
      operands(step.node, [this](uint32_t operand) { stack_.push_back({operand, false}); });
      for (size_t low = first, high = stack_.size(); low + 1 < high; ++low) std::swap(stack_[low], stack_[--high]);
    }
  }

  // Returns true at the first visit of a node and marks it visited.
  bool visit(uint32_t node) {
    if (node >= seen_.size()) seen_.resize(node + node / 2 + 64, false);
    const bool is_new = !seen_[node];
    seen_[node] = true;
    return is_new;
  }
  bool has_seen(uint32_t node) const { return node < seen_.size() && seen_[node]; }

 private:
  struct Step {
    uint32_t node;
    bool is_done;  // true once all operands have been visited
  };
  std::vector<bool> seen_;
  std::vector<Step> stack_;
};

}  // namespace heddle
