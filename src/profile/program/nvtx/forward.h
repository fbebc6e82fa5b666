#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "profile/program/nvtx/ranges.h"

namespace heddle::profile {

// Stores the call stacks of forward operators by sequence number. A forward operator and its gradient function have the
// same sequence number. Only the latest kMost operators are kept, which is more than a training step has.
class ForwardOperators {
 public:
  // Records the operators that are active on a thread. `stack` is the ID of the call stack from which the operators
  // were called.
  void remember(std::span<const Range> ranges, uint64_t stack) {
    const std::lock_guard lock(mutex_);
    for (const Range& range : ranges) {
      if (range.sequence < 0) continue;
      if (known_.empty()) known_.resize(kMost);
      known_[static_cast<size_t>(range.sequence) % kMost] = {range.sequence, stack};
    }
  }

  // Returns the ID of the call stack from which a forward operator was called, or 0 if it is unknown. The outermost of
  // `ranges` that has a sequence number identifies the operator.
  uint64_t stack_of(std::span<const Range> ranges) const {
    const std::lock_guard lock(mutex_);
    for (const Range& range : ranges) {
      if (range.sequence < 0) continue;
      if (known_.empty()) return 0;
      const Known& found = known_[static_cast<size_t>(range.sequence) % kMost];
      return found.sequence == range.sequence ? found.stack : 0;
    }
    return 0;
  }

 private:
  static constexpr size_t kMost = size_t{1} << 17;
  struct Known {
    int64_t sequence = -1;
    uint64_t stack = 0;
  };
  mutable std::mutex mutex_;
  std::vector<Known> known_;
};

}  // namespace heddle::profile
