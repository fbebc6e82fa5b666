#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace heddle::profile {

// What a row of a profile stands for. `kind` is a word of docs/reference/profile-json.md: "module", "node", "kernel",
// ...
struct Frame {
  std::string kind, name;
  std::string file = {};  // of the source; "": none
  int64_t line = 0;       // from 1; 0: none
  auto operator<=>(const Frame&) const = default;
};

// What is counted: nanoseconds ("ns"), bytes ("bytes"), or occurrences ("").
struct Metric {
  std::string name, unit, title;
  bool operator==(const Metric&) const = default;
};

namespace metrics {
// Of a GPU: kernels as recorded, and the part of them in which each instant counts for one kernel.
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
// sensitive profiling", section 4): one node for each path of frames that was met, however often. Values are integers,
// so that sums over any view of it are exact. Node 0 is the root; parents come before their children.
class CallingContextTree {
 public:
  CallingContextTree() : CallingContextTree(Frame{"root", "all"}) {}
  explicit CallingContextTree(const Frame& root);

  size_t size() const { return parents_.size(); }
  NodeId parent(NodeId node) const { return parents_[node]; }  // of the root: itself
  FrameId frame_id(NodeId node) const { return node_frames_[node]; }
  const Frame& frame(NodeId node) const { return frames_[node_frames_[node]]; }
  const std::vector<Frame>& frames() const { return frames_; }
  const std::vector<Metric>& metrics() const { return metrics_; }

  // The number of a frame or metric, which is added unless it is there. Throws kInvalidArgument where a metric of this
  // name has another unit.
  FrameId add_frame(const Frame& frame);
  size_t add_metric(const Metric& metric);
  // The child of `parent` with this frame, which is added unless it is there.
  NodeId child(NodeId parent, const Frame& frame) { return child(parent, add_frame(frame)); }
  NodeId child(NodeId parent, FrameId frame);
  void add(NodeId node, size_t metric, int64_t value) { values_[metric][node] += value; }

  // By node, without and with what is below it.
  const std::vector<int64_t>& own(size_t metric) const { return values_[metric]; }
  std::vector<int64_t> inclusive(size_t metric) const;
  int64_t total(size_t metric) const;

  // Adds the paths of another tree and their values, for which roots are one. By node of the other: its node here.
  std::vector<NodeId> merge(const CallingContextTree& other);

 private:
  std::vector<NodeId> parents_;
  std::vector<FrameId> node_frames_;
  std::vector<Frame> frames_;
  std::map<Frame, FrameId> frame_ids_;
  std::unordered_map<uint64_t, NodeId> children_;  // by parent and frame
  std::vector<Metric> metrics_;
  std::vector<std::vector<int64_t>> values_;  // by metric, by node
};

}  // namespace heddle::profile
