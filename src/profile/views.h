#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/tree.h"

namespace heddle::profile {

// A row of a view, with its value of one metric: excluding its children (`own`) and including them (`inclusive`).
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

// The tree in calling order. The inclusive value of the root is the metric's total.
Row top_down(const CallingContextTree& tree, size_t metric);
// A row per frame with its own value (as `inclusive`). Its callers are below it and divide this value among them. The
// rows' values sum to the total. `depth`: the most levels of callers.
std::vector<Row> bottom_up(const CallingContextTree& tree, size_t metric, int depth = 64);
// A row per frame. If a frame calls itself, directly or through others, its inclusive value counts everything below the
// outermost call once. Own values sum to the total.
std::vector<Row> flat(const CallingContextTree& tree, size_t metric);

// The metric of this name, if it has any values.
std::optional<size_t> find_metric(const CallingContextTree& tree, std::string_view name);
// The metric that sorts the rows of a profile: GPU time, else CPU time, else the first time metric that has any values.
std::optional<size_t> time_metric(const CallingContextTree& tree);

// "layers.3/attn/MatMul": the names of the frames below the root down to a node. A path too long to read is cut to its
// end, after ".../".
std::string path_text(const CallingContextTree& tree, NodeId node);

// The path from the root that follows the child with the largest inclusive value, as long as it has at least `share` of
// its parent's.
std::vector<NodeId> hot_path(const CallingContextTree& tree, size_t metric, double share = 0.5);

}  // namespace heddle::profile
