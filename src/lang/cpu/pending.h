#pragma once

#include <vector>

#include "lang/cpu/state.h"

namespace heddle::lang::cpu {

// Counts the ops that the loop of a pending value would have, including those of its pending operands. The limit kMost
// bounds the depth of every recursion over operands. It also bounds the length of loops, because the time of the C++
// compiler grows faster than their length.
class PendingOps {
 public:
  static constexpr int kMost = 512;

  explicit PendingOps(const State& state)
      : state_(state), counts_(state.kernel.values.size()), walks_(state.kernel.values.size()) {}

  // True if the loop of `op`, the next op to become pending, would have more than kMost ops.
  bool exceeds(const Op& op);

 private:
  // Counts `op` and the ops below it, each once; stops beyond kMost.
  int counted(const Op& op);
  bool is_pending(ValueId value) const { return state_.is_pending(value) && state_.type(value).is_tile(); }

  const State& state_;
  std::vector<int> counts_;  // by value: at least the ops of its loop
  std::vector<int> walks_;   // by value: the last walk that reached it
  int walk_ = 0;
};

}  // namespace heddle::lang::cpu
