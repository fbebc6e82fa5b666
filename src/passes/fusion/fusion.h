#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ir/analysis/placement.h"
#include "ir/group.h"
#include "target/target.h"

namespace heddle::passes {

enum class FusionPolicy : uint8_t {
  kNone,    // every node is a kernel of its own
  kBasic,   // producer into consumer per element, as common compilers do
  kStitch,  // memory-bound regions as one kernel, epilogues into contractions
};

// Rules of kStitch that join contractions; off to compare with doing without.
struct FusionRules {
  bool attention = true, back_to_back = true;
};

struct FusionOptions {
  FusionPolicy policy = FusionPolicy::kStitch;
  FusionRules rules = {};
  // Whether a node can be compiled as a member of a group; the driver sets it to schedule::can_compile. Empty: all that
  // are memory-bound or anchors of templates.
  std::function<bool(const ir::Node& node, std::string* reason)> can_compile = {};
  // The attention whose last product is a node; `may_view` says whether a layout change may go into the kernel of who
  // reads it, `reason` becomes why there is none where something like it was found. The driver sets it to
  // schedule::AttentionFinder::find. Empty: there are none.
  using MayView = std::function<bool(ir::NodeId view, ir::NodeId reader)>;
  std::function<std::optional<ir::Attention>(ir::NodeId product, const MayView& may_view, std::string* reason)>
      find_attention = {};
  // Whether a group of kind kAttention is to be one kernel; the driver sets it to schedule::can_attend.
  std::function<bool(const ir::Group& group, std::string* reason)> can_attend = {};
  // Whether a group of kind kBackToBack is to be one kernel; the driver sets it to schedule::can_run_back_to_back.
  // Empty: none is.
  std::function<bool(const ir::Group& group, std::string* reason)> can_run_back_to_back = {};
  // What decisions about concatenations in place are explained by. Empty: they are not.
  ir::PlacementObstacle placement_obstacle = {};
};

// Partitions the nodes of a graph into groups. Each rule (fusion/<rule>.h) returns a Decision, and each decision made
// on the way is in the result. Nodes that no compiler path takes form reference groups.
ir::Grouping fuse(const ir::Graph& graph, const Target& target, const FusionOptions& options = {});

}  // namespace heddle::passes
