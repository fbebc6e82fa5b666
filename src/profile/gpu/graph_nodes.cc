#include "profile/gpu/graph_nodes.h"

namespace heddle::profile {

bool GraphNodes::add(uint64_t node, uint64_t context) {
  const std::lock_guard lock(mutex_);
  if (contexts_.size() >= kMost && !contexts_.contains(node)) return false;
  contexts_[node] = context;
  return true;
}

bool GraphNodes::copy(uint64_t from, uint64_t to) {
  const uint64_t context = context_of(from);
  return context == 0 || add(to, context);
}

void GraphNodes::add_executable(uint32_t executable, uint32_t graph) {
  const std::lock_guard lock(mutex_);
  if (graphs_.size() < kMost) graphs_[executable] = graph;
}

// The nodes of an executable graph are announced as copies by some versions, and not at all by others.
uint64_t GraphNodes::context_of(uint64_t node) const {
  constexpr uint64_t kLower = 0xffffffff;
  const std::lock_guard lock(mutex_);
  if (const auto found = contexts_.find(node); found != contexts_.end()) return found->second;
  const auto graph = graphs_.find(static_cast<uint32_t>(node >> 32));
  if (graph == graphs_.end()) return 0;
  const auto found = contexts_.find(uint64_t{graph->second} << 32 | (node & kLower));
  return found == contexts_.end() ? 0 : found->second;
}

}  // namespace heddle::profile
