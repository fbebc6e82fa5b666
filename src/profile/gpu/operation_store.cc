#include "profile/gpu/operation_store.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace heddle::profile {

size_t OperationStore::room_for(size_t count) const {
  const std::lock_guard lock(mutex_);
  return std::min(count, most_ - std::min(count_, most_));
}

void OperationStore::add(std::span<const GpuOperation> operations) {
  if (operations.empty()) return;
  const std::lock_guard lock(mutex_);
  parts_.emplace_back(operations.begin(), operations.end());
  count_ += operations.size();
}

// What is copied is given back part by part: twice all of it at once would be beyond the bound.
std::vector<GpuOperation> OperationStore::take(uint64_t until) {
  std::deque<std::vector<GpuOperation>> parts;
  size_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    parts.swap(parts_);
    count = std::exchange(count_, 0);
  }
  std::vector<GpuOperation> operations;
  operations.reserve(count);
  for (; !parts.empty(); parts.pop_front()) {
    operations.insert(operations.end(), parts.front().begin(), parts.front().end());
  }
  std::sort(operations.begin(), operations.end(), [](const GpuOperation& a, const GpuOperation& b) {
    return std::tie(a.start, a.end, a.correlation) < std::tie(b.start, b.end, b.correlation);
  });
  const auto later = std::upper_bound(operations.begin(), operations.end(), until,
                                      [](uint64_t time, const GpuOperation& o) { return time < o.start; });
  add({later, operations.end()});
  operations.erase(later, operations.end());
  return operations;
}

}  // namespace heddle::profile
