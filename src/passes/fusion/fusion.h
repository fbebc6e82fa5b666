#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ir/analysis/placement.h"
#include "ir/group.h"
#include "passes/names.h"
#include "target/target.h"

namespace heddle::passes {

enum class FusionPolicy : uint8_t {
  kNone,    // every node is a kernel of its own
  kBasic,   // producer into consumer per element, as common compilers do
  kStitch,  // memory-bound regions as one kernel, epilogues into contractions
};

// Rules of kStitch that join contractions. They can be turned off for comparison.
struct FusionRules {
  bool attention = true, back_to_back = true;
};

struct FusionOptions {
  FusionPolicy policy = FusionPolicy::kStitch;
  FusionRules rules = {};
  // Whether a node can be compiled as a member of a group. The driver sets it to schedule::can_compile. Empty: all
  // nodes that are memory-bound or anchors of templates can.
  std::function<bool(const ir::Node& node, std::string* reason)> can_compile = {};
  // Finds the attention whose last product is `product`. `may_view` tells whether a layout change may be fused into its
  // reader's kernel. If only something similar was found, `reason` says why it is no attention. The driver sets it to
  // schedule::AttentionFinder::find. Empty: there are no attentions.
  using MayView = std::function<bool(ir::NodeId view, ir::NodeId reader)>;
  std::function<std::optional<ir::Attention>(ir::NodeId product, const MayView& may_view, std::string* reason)>
      find_attention = {};
  // Whether a group of kind kAttention becomes one kernel. The driver sets it to schedule::can_attend.
  std::function<bool(const ir::Group& group, std::string* reason)> can_attend = {};
  // Whether a group of kind kBackToBack becomes one kernel. The driver sets it to schedule::can_run_back_to_back.
  // Empty: none does.
  std::function<bool(const ir::Group& group, std::string* reason)> can_run_back_to_back = {};
  // Explains decisions about concatenations in place. Empty: they are not explained.
  ir::PlacementObstacle placement_obstacle = {};
};

// Partitions the nodes of a graph into groups. Each rule (fusion/<rule>.h) returns a Decision; the result lists all of
// them. Nodes that no compiler path takes form reference groups.
ir::Grouping fuse(const ir::Graph& graph, const Target& target, const FusionOptions& options = {});

}  // namespace heddle::passes
