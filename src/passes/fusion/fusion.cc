#include "passes/fusion/fusion.h"

#include <algorithm>

#include "base/check.h"
#include "ir/analysis/gated_product.h"
#include "passes/fusion/context.h"

namespace heddle::passes {
namespace {

using ir::GroupKind;
using ir::NodeId;
using Role = FusionContext::Role;

GroupKind kind_of(Role role) {
  switch (role) {
    case Role::kAnchor:
    case Role::kPrologue:
    case Role::kEpilogue:
      return GroupKind::kContraction;
    case Role::kControl:
      return GroupKind::kControl;
    case Role::kTile:
      return GroupKind::kTile;
    case Role::kReference:
      return GroupKind::kReference;
    default:
      return GroupKind::kStitch;
  }
}

ir::Group make_group(const FusionContext& c, Partition::Cluster cluster) {
  ir::Group group = c.group_of(c.partition.nodes(cluster));
  group.kind = kind_of(c.role[group.nodes[0]]);
  for (NodeId id : group.nodes) {
    if (c.role[id] == Role::kAnchor) group.anchor = id;
    if (c.chain_of[id]) group.kind = *c.chain_of[id];
  }
  return group;
}

// Why products that meet element by element are not one, whose columns come in pairs: passes/contraction/gate_dots.h
// makes it.
void explain_gates(FusionContext& c) {
  for (const ir::GateCandidate& gate : ir::find_gate_candidates(c.graph)) {
    if (!gate.refused.empty()) c.decide(false, "gate", gate.meeting.at(), gate.dots[0], gate.refused);
  }
}

}  // namespace

ir::Grouping fuse(const ir::Graph& graph, const Target& target, const FusionOptions& options) {
  FusionContext context(graph, options);
  if (options.policy == FusionPolicy::kStitch) {
    std::vector<NodeId> anchors;
    for (NodeId id = 0; id < graph.nodes().size(); ++id) {
      if (context.role[id] == Role::kAnchor) anchors.push_back(id);
    }
    for (NodeId anchor : anchors) fuse_attention(context, anchor);
    const auto taken = [&](NodeId id) { return context.chain_of[id] || context.role[id] != Role::kAnchor; };
    anchors.erase(std::remove_if(anchors.begin(), anchors.end(), taken), anchors.end());
    if (target.traits().gates_products) explain_gates(context);
    for (NodeId anchor : anchors) fuse_epilogue(context, anchor, target);
    for (NodeId anchor : anchors) fuse_prologue(context, anchor);
    for (NodeId anchor : anchors) fuse_back_to_back(context, anchor);
    fuse_stitch(context);
    if (target.traits().runs_regions_side_by_side) {
      fuse_small_regions(context, target);
    } else {
      fuse_remote(context);
    }
  } else if (options.policy == FusionPolicy::kBasic) {
    fuse_basic(context);
  }
  ir::Grouping grouping;
  for (Partition::Cluster cluster : context.partition.order()) grouping.groups.push_back(make_group(context, cluster));
  grouping.decisions = std::move(context.decisions);
  return grouping;
}

}  // namespace heddle::passes
