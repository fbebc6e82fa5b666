#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "profile/gpu/operation.h"

namespace heddle::profile {

// A bounded queue of operations between CUPTI's buffers and their reader. Thread-safe.
class OperationStore {
 public:
  explicit OperationStore(size_t most) : most_(most) {}

  // The number of operations, at most `count`, that still fit in the store.
  size_t room_for(size_t count) const;
  void add(std::span<const GpuOperation> operations);
  // Removes and returns the operations that started at or before `until`, in order of start.
  std::vector<GpuOperation> take(uint64_t until);

 private:
  const size_t most_;
  mutable std::mutex mutex_;
  std::deque<std::vector<GpuOperation>> parts_;
  size_t count_ = 0;
};

}  // namespace heddle::profile
