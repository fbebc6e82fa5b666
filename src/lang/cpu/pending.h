#pragma once

#include <vector>

#include "lang/cpu/state.h"

namespace heddle::lang::cpu {

// Counts the ops that the loop for a pending value would contain, including the ops of its pending operands. The limit
// kMost bounds the recursion depth over operands. It also bounds the length of loops, because the run time of the C++
// compiler grows faster than their length.
class PendingOps {
 public:
  static constexpr int kMost = 512;

  explicit PendingOps(const State& state)
      : state_(state), counts_(state.kernel.values.size()), walks_(state.kernel.values.size()) {}

  // True if the loop for `op`, the next op to become pending, would contain more than kMost ops.
  bool exceeds(const Op& op);

 private:
  // Counts `op` and the pending ops that compute its operands, each once. Stops counting above kMost.
  int counted(const Op& op);
  bool is_pending(ValueId value) const { return state_.is_pending(value) && state_.type(value).is_tile(); }

  const State& state_;
  std::vector<int> counts_;  // by value: upper bound of the ops in its loop
  std::vector<int> walks_;   // by value: number of the last traversal that visited it
  int walk_ = 0;
};

}  // namespace heddle::lang::cpu
