#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/tree.h"

namespace heddle::profile {

// A row of a view, with two values of one metric: `own` excludes the row's children, and `inclusive` includes them.
struct Row {
  FrameId frame = 0;
  int64_t own = 0, inclusive = 0;
  std::vector<Row> children = {};  // sorted by inclusive value, the largest first

  Row() = default;
  Row(FrameId of, int64_t its_own, int64_t with_children) : frame(of), own(its_own), inclusive(with_children) {}
  Row(Row&&) noexcept = default;
  Row& operator=(Row&&) noexcept = default;
  ~Row();  // not recursive, since a tree may be deeper than the stack
};

// The tree from callers to callees. The inclusive value of the root is the metric's total.
Row top_down(const CallingContextTree& tree, size_t metric);
// A row per frame. If a frame calls itself, directly or through other frames, its inclusive value counts everything
// below the outermost call once. Own values sum to the total.
std::vector<Row> flat(const CallingContextTree& tree, size_t metric);

// Finds the metric of this name. Returns nullopt if there is none or it has no values.
std::optional<size_t> find_metric(const CallingContextTree& tree, std::string_view name);
// The metric by which the rows of a profile are sorted: GPU time, else CPU time, else the first time metric that has
// any values.
std::optional<size_t> time_metric(const CallingContextTree& tree);

// Returns the names of the frames from below the root to a node: "layers.3/attn/MatMul". If the path is too long to
// read, keeps only its end, prefixed with ".../".
std::string path_text(const CallingContextTree& tree, NodeId node);

// Returns the path from the root that always follows the child with the largest inclusive value. The path ends if that
// child has less than `share` of its parent's value.
std::vector<NodeId> hot_path(const CallingContextTree& tree, size_t metric, double share = 0.5);

}  // namespace heddle::profile
