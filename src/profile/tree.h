#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace heddle::profile {

// Identifies a profile row. `kind` is "module", "node", "kernel" or another word of docs/reference/profile-json.md.
struct Frame {
  std::string kind, name;
  std::string file = {};  // source file; "" if none
  int64_t line = 0;       // counted from 1; 0 if none
  auto operator<=>(const Frame&) const = default;
};

// A quantity that is summed, in nanoseconds ("ns"), bytes ("bytes") or occurrences ("").
struct Metric {
  std::string name, unit, title;
  bool operator==(const Metric&) const = default;
};

namespace metrics {
// GKER is the sum of the recorded kernel times. GBUSY counts each instant only once, even if several kernels overlap.
inline const Metric kGpuBusy{"GBUSY", "ns", "GPU busy"};
inline const Metric kGpuKernels{"GKER", "ns", "GPU kernels"};
inline const Metric kGpuMemset{"GMSET", "ns", "GPU memsets"};
inline const Metric kGpuSync{"GSYNC", "ns", "Waiting for the GPU"};
inline const Metric kGpuIdle{"GIDLE", "ns", "GPU idle"};
inline const Metric kGpuAllocated{"GMEM", "bytes", "GPU memory allocated"};
inline const Metric kGpuFreed{"GMEM:free", "bytes", "GPU memory freed"};
inline const Metric kCpu{"CPU", "ns", "CPU"};
inline const Metric kLaunches{"LAUNCHES", "", "Launches"};
}  // namespace metrics

using NodeId = uint32_t;
using FrameId = uint32_t;

// A calling-context tree (Ammons, Ball, Larus, "Exploiting hardware performance counters with flow and context
// sensitive profiling", section 4). It has one node for each distinct path of frames, however often the path occurs.
// Values are integers, so sums over any view are exact. Node 0 is the root. A parent's number is smaller than its
// children's.
class CallingContextTree {
 public:
  CallingContextTree() : CallingContextTree(Frame{"root", "all"}) {}
  explicit CallingContextTree(const Frame& root);

  size_t size() const { return parents_.size(); }
  NodeId parent(NodeId node) const { return parents_[node]; }  // the root is its own parent
  FrameId frame_id(NodeId node) const { return node_frames_[node]; }
  const Frame& frame(NodeId node) const { return frames_[node_frames_[node]]; }
  const std::vector<Frame>& frames() const { return frames_; }
  const std::vector<Metric>& metrics() const { return metrics_; }

  // Returns the number of a frame or metric, adding it if it is new. Throws kInvalidArgument if a metric of this name
  // has a different unit.
  FrameId add_frame(const Frame& frame);
  size_t add_metric(const Metric& metric);
  // Returns the child of `parent` with this frame, adding it if it is new.
  NodeId child(NodeId parent, const Frame& frame) { return child(parent, add_frame(frame)); }
  NodeId child(NodeId parent, FrameId frame);
  void add(NodeId node, size_t metric, int64_t value) { values_[metric][node] += value; }

  // Values by node. own() excludes the values of a node's descendants; inclusive() includes them.
  const std::vector<int64_t>& own(size_t metric) const { return values_[metric]; }
  std::vector<int64_t> inclusive(size_t metric) const;
  int64_t total(size_t metric) const;

  // Adds the paths and values of another tree. The roots of both trees count as one node. Returns, for each node of
  // `other`, the corresponding node of this tree.
  std::vector<NodeId> merge(const CallingContextTree& other);

 private:
  std::vector<NodeId> parents_;
  std::vector<FrameId> node_frames_;
  std::vector<Frame> frames_;
  std::map<Frame, FrameId> frame_ids_;
  std::unordered_map<uint64_t, NodeId> children_;  // keyed by parent and frame
  std::vector<Metric> metrics_;
  std::vector<std::vector<int64_t>> values_;  // [metric][node]
};

}  // namespace heddle::profile
