#include "passes/fusion/fusion.h"

#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "passes/fusion/context.h"

namespace heddle::passes {
namespace {

using ir::GroupKind;
using ir::NodeId;
using ir::ValueId;
using Role = FusionContext::Role;

GroupKind kind_of(Role role) {
  switch (role) {
    case Role::kAnchor:
    case Role::kPrologue:
    case Role::kEpilogue:
      return GroupKind::kContraction;
    case Role::kControl:
      return GroupKind::kControl;
    case Role::kReference:
      return GroupKind::kReference;
    default:
      return GroupKind::kStitch;
  }
}

ir::Group make_group(const FusionContext& c, Partition::Cluster cluster) {
  ir::Group group{};
  group.nodes = c.partition.nodes(cluster);
  std::sort(group.nodes.begin(), group.nodes.end());
  group.kind = kind_of(c.role[group.nodes[0]]);
  group.anchor = group.nodes[0];
  std::unordered_set<ValueId> read;
  for (NodeId id : group.nodes) {
    if (c.role[id] == Role::kAnchor) group.anchor = id;
    if (c.in_attention[id]) group.kind = GroupKind::kAttention;
    for (ValueId v : c.graph.node(id).inputs) {
      const bool outside = c.partition.cluster_of(c.graph.value(v).producer) != cluster;
      if (outside && read.insert(v).second) group.inputs.push_back(v);
    }
    for (ValueId v : c.graph.node(id).outputs) {
      const auto outside = [&](NodeId user) { return c.partition.cluster_of(user) != cluster; };
      if (c.is_output[v] || std::any_of(c.users[v].begin(), c.users[v].end(), outside)) group.outputs.push_back(v);
    }
  }
  return group;
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
    const auto taken = [&](NodeId id) { return context.in_attention[id] || context.role[id] != Role::kAnchor; };
    anchors.erase(std::remove_if(anchors.begin(), anchors.end(), taken), anchors.end());
    for (NodeId anchor : anchors) fuse_epilogue(context, anchor, target);
    for (NodeId anchor : anchors) fuse_prologue(context, anchor);
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
