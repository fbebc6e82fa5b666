#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ir/analysis/filter_gradient.h"
#include "ir/analysis/placement.h"
#include "ir/group.h"
#include "passes/names.h"
#include "target/target.h"

namespace heddle::passes {

enum class FusionPolicy : uint8_t {
  kNone,    // every node is a separate kernel
  kBasic,   // fuses a producer into its consumer elementwise, as common compilers do
  kStitch,  // one kernel per memory-bound region; fuses epilogues into contractions
};

// Rules of kStitch that fuse contractions, and the joining of consecutive GPU kernels in one launch. They can be turned
// off for comparison.
struct FusionRules {
  bool attention = true, back_to_back = true, sequences = true;
};

struct FusionOptions {
  FusionPolicy policy = FusionPolicy::kStitch;
  FusionRules rules = {};
  // True if a node can be compiled as a member of a group. The driver sets this to schedule::can_compile. If empty, all
  // memory-bound nodes and all nodes that contraction templates compute (ir::is_anchor) can be members.
  std::function<bool(const ir::Node& node, std::string* reason)> can_compile = {};
  // Finds the attention whose last product is `product`. `may_view` tells whether a layout change may be fused into the
  // kernel of its reader. If the nodes only resemble an attention, `reason` receives the difference. The driver sets
  // this to schedule::AttentionFinder::find. If empty, no attentions are found.
  using MayView = std::function<bool(ir::NodeId view, ir::NodeId reader)>;
  std::function<std::optional<ir::Attention>(ir::NodeId product, const MayView& may_view, std::string* reason)>
      find_attention = {};
  // Finds the operands that the kernel of the convolution `conv`, a filter gradient, reads where they are in memory.
  // The driver asks ir::filter_gradient and schedule::Backend. If empty, none is found.
  std::function<std::optional<ir::FilterGradient>(ir::NodeId conv, const MayView& may_view)> find_filter_gradient = {};
  // True if a group of kind kAttention can be one kernel. The driver sets this to schedule::can_attend.
  std::function<bool(const ir::Group& group, std::string* reason)> can_attend = {};
  // True if a group of kind kBackToBack can be one kernel. The driver sets this to schedule::can_run_back_to_back. If
  // empty, no such group can.
  std::function<bool(const ir::Group& group, std::string* reason)> can_run_back_to_back = {};
  // True if a product should read its packed weights itself, as in the group `packed`. If false, another kernel first
  // widens them, and the product's group is `widened`. The driver asks schedule::Backend. If empty, products read
  // packed weights.
  std::function<bool(const ir::Group& packed, const ir::Group& widened, std::string* reason)> pays_to_read_packed = {};
  // Explains why a concatenation is not computed in place. If empty, these decisions are not explained.
  ir::PlacementObstacle placement_obstacle = {};
};

// Partitions the nodes of a graph into groups. Each rule (fusion/<rule>.h) returns a Decision; the result lists all
// decisions. Nodes that no kernel can compute form reference groups.
ir::Grouping fuse(const ir::Graph& graph, const Target& target, const FusionOptions& options = {});

}  // namespace heddle::passes
