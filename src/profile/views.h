#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/tree.h"

namespace heddle::profile {

// A row of a view, with its value of one metric: without and with what is below it.
struct Row {
  FrameId frame = 0;
  int64_t own = 0, inclusive = 0;
  std::vector<Row> children = {};  // the largest inclusive value first

  Row() = default;
  Row(FrameId of, int64_t its_own, int64_t with_children) : frame(of), own(its_own), inclusive(with_children) {}
  Row(Row&&) noexcept = default;
  Row& operator=(Row&&) noexcept = default;
  ~Row();  // not recursive: a tree may be deeper than the stack
};

// The tree as it was called. The inclusive value of its root is the metric's total.
Row top_down(const CallingContextTree& tree, size_t metric);
// Each frame with its own value (`inclusive`), and below it its callers, among which the value is divided. The rows'
// values sum to the total. `depth`: callers of callers, so many.
std::vector<Row> bottom_up(const CallingContextTree& tree, size_t metric, int depth = 64);
// Each frame once. Where a frame calls itself, directly or through others, its inclusive value counts what is below the
// outermost call once. Own values sum to the total.
std::vector<Row> flat(const CallingContextTree& tree, size_t metric);

// The metric of this name, where anything was counted of it.
std::optional<size_t> find_metric(const CallingContextTree& tree, std::string_view name);
// What the rows of a profile are sorted by: the time of GPUs, else of the CPU, else the first metric of time that
// anything was counted of.
std::optional<size_t> time_metric(const CallingContextTree& tree);

// "layers.3/attn/MatMul": the names of the frames below the root down to a node. A path too long to read is cut to its
// end, after ".../".
std::string path_text(const CallingContextTree& tree, NodeId node);

// From the root the child with the largest inclusive value, as long as it has at least `share` of its parent's.
std::vector<NodeId> hot_path(const CallingContextTree& tree, size_t metric, double share = 0.5);

}  // namespace heddle::profile
