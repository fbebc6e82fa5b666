#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace heddle::profile {

// Maps nodes of CUDA graphs to the contexts in which they were added. The upper half of a node id is the id of the
// node's graph or, in a profiling record, the id of the executable graph. Thread-safe.
class GraphNodes {
 public:
  // Adds a node unless it is already known. add() and copy() return false if there are too many nodes.
  bool add(uint64_t node, uint64_t context);
  bool copy(uint64_t from, uint64_t to);
  void add_executable(uint32_t executable, uint32_t graph);
  // Returns the context of a node; 0 if unknown.
  uint64_t context_of(uint64_t node) const;

 private:
  static constexpr size_t kMost = size_t{1} << 20;
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, uint64_t> contexts_;
  std::unordered_map<uint32_t, uint32_t> graphs_;  // from the executable graph's id to the graph's id
};

}  // namespace heddle::profile
