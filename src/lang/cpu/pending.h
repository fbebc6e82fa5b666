#pragma once

#include <vector>

#include "lang/cpu/state.h"

namespace heddle::lang::cpu {

// Counts the ops that the loop of a pending value would have, those of its pending operands included. A bound on the
// count bounds the depth of every recursion over operands, and the length of the loops that the C++ compiler gets,
// whose time grows faster than their length.
class PendingOps {
 public:
  static constexpr int kMost = 512;

  explicit PendingOps(const State& state)
      : state_(state), counts_(state.kernel.values.size()), walks_(state.kernel.values.size()) {}

  // Whether the loop of an op, the next one that becomes pending, would have more than kMost ops.
  bool exceeds(const Op& op);

 private:
  // The ops below `op` and itself, each once; stops beyond kMost.
  int counted(const Op& op);
  bool is_pending(ValueId value) const { return state_.is_pending(value) && state_.type(value).is_tile(); }

  const State& state_;
  std::vector<int> counts_;  // by value: at least the ops of its loop
  std::vector<int> walks_;   // by value: the last walk that met it
  int walk_ = 0;
};

}  // namespace heddle::lang::cpu
