#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace heddle::profile {

// The contexts in which nodes were added to CUDA graphs. The upper half of a node's number is its graph's number; in a
// record it is the number of the executable graph. Thread-safe.
class GraphNodes {
 public:
  // Adds a node unless it is known. False if there are too many already; copy() does the same.
  bool add(uint64_t node, uint64_t context);
  bool copy(uint64_t from, uint64_t to);
  void add_executable(uint32_t executable, uint32_t graph);
  // 0: none.
  uint64_t context_of(uint64_t node) const;

 private:
  static constexpr size_t kMost = size_t{1} << 20;
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, uint64_t> contexts_;
  std::unordered_map<uint32_t, uint32_t> graphs_;  // by executable
};

}  // namespace heddle::profile
