#include "profile/gpu/graph_nodes.h"

namespace heddle::profile {

bool GraphNodes::add(uint64_t node, uint64_t context) {
  const std::lock_guard lock(mutex_);
  if (contexts_.size() >= kMost && !contexts_.contains(node)) return false;
  contexts_.try_emplace(node, context);
  return true;
}

bool GraphNodes::copy(uint64_t from, uint64_t to) {
  const uint64_t context = context_of(from);
  if (context == 0) return true;
  const std::lock_guard lock(mutex_);
  if (contexts_.size() >= kMost && !contexts_.contains(to)) return false;
  contexts_[to] = context;
  return true;
}

void GraphNodes::add_executable(uint32_t executable, uint32_t graph) {
  const std::lock_guard lock(mutex_);
  if (graphs_.size() < kMost) graphs_[executable] = graph;
}

// Making a graph executable announces nodes, too, as new ones, as copies or not at all: what they are copies of counts.
uint64_t GraphNodes::context_of(uint64_t node) const {
  constexpr uint64_t kLower = 0xffffffff;
  const std::lock_guard lock(mutex_);
  const auto graph = graphs_.find(static_cast<uint32_t>(node >> 32));
  if (graph != graphs_.end()) {
    const auto original = contexts_.find(uint64_t{graph->second} << 32 | (node & kLower));
    if (original != contexts_.end()) return original->second;
  }
  const auto found = contexts_.find(node);
  return found == contexts_.end() ? 0 : found->second;
}

}  // namespace heddle::profile
