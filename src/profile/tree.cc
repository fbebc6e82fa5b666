#include "profile/tree.h"

#include <numeric>

#include "base/check.h"

namespace heddle::profile {

CallingContextTree::CallingContextTree(const Frame& root) : parents_{0} {
  node_frames_.push_back(add_frame(root));
}

FrameId CallingContextTree::add_frame(const Frame& frame) {
  const auto [found, is_new] = frame_ids_.try_emplace(frame, static_cast<FrameId>(frames_.size()));
  if (is_new) frames_.push_back(frame);
  return found->second;
}

size_t CallingContextTree::add_metric(const Metric& metric) {
  for (size_t i = 0; i < metrics_.size(); ++i) {
    if (metrics_[i].name != metric.name) continue;
    if (metrics_[i].unit != metric.unit) {
      fail(ErrorCode::kInvalidArgument, "metric " + metric.name,
           fmt::format("its unit is \"{}\" and was \"{}\"", metric.unit, metrics_[i].unit));
    }
    return i;
  }
  metrics_.push_back(metric);
  values_.emplace_back(size(), 0);
  return metrics_.size() - 1;
}

NodeId CallingContextTree::child(NodeId parent, FrameId frame) {
  const uint64_t key = uint64_t{parent} << 32 | frame;
  const auto [found, is_new] = children_.try_emplace(key, static_cast<NodeId>(size()));
  if (is_new) {
    parents_.push_back(parent);
    node_frames_.push_back(frame);
    for (std::vector<int64_t>& values : values_) values.push_back(0);
  }
  return found->second;
}

std::vector<int64_t> CallingContextTree::inclusive(size_t metric) const {
  std::vector<int64_t> sums = values_[metric];
  for (size_t node = size(); node-- > 1;) sums[parents_[node]] += sums[node];
  return sums;
}

int64_t CallingContextTree::total(size_t metric) const {
  return std::accumulate(values_[metric].begin(), values_[metric].end(), int64_t{0});
}

std::vector<NodeId> CallingContextTree::merge(const CallingContextTree& other) {
  std::vector<FrameId> frames;
  for (const Frame& frame : other.frames_) frames.push_back(add_frame(frame));
  std::vector<size_t> metrics;
  for (const Metric& metric : other.metrics_) metrics.push_back(add_metric(metric));
  std::vector<NodeId> nodes(other.size(), 0);
  for (NodeId node = 1; node < other.size(); ++node) {
    nodes[node] = child(nodes[other.parents_[node]], frames[other.node_frames_[node]]);
  }
  for (size_t m = 0; m < metrics.size(); ++m) {
    for (NodeId node = 0; node < other.size(); ++node) add(nodes[node], metrics[m], other.values_[m][node]);
  }
  return nodes;
}

}  // namespace heddle::profile
