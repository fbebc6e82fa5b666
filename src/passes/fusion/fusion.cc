#include "passes/fusion/fusion.h"

#include <algorithm>

#include "base/check.h"
#include "ir/analysis/gated_product.h"
#include "ir/analysis/placement.h"
#include "passes/fusion/context.h"
#include "passes/fusion/join_in_place.h"

namespace heddle::passes {
namespace {

using ir::GroupKind;
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

// What is copied of a concatenation in place, and why.
std::string copied_parts(const FusionContext& c, const JoinObstacles& obstacles, const ir::Placements& placed,
                         NodeId id) {
  const ir::Node& node = c.graph.node(id);
  std::string text;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ir::Node& copy = c.graph.producer(node.inputs[i]);
    if (copy.op != ir::Op::kCast || c.graph.dtype(copy.inputs[0]) != c.graph.dtype(node.inputs[i])) continue;
    const std::string why = obstacles.of_part(copy.inputs[0], id, placed.at(node.inputs[i]));
    text += fmt::format("; part {} is copied{}", i, why.empty() ? "" : ": " + why);
  }
  return text;
}

// Which stored concatenations cost nothing, what is copied of them, and why others are copied as a whole.
void explain_joins(FusionContext& c, ir::Grouping& grouping, const Target& target) {
  const auto is_concat = [](const ir::Node& node) { return node.op == ir::Op::kConcat; };
  if (std::none_of(c.graph.nodes().begin(), c.graph.nodes().end(), is_concat)) return;
  const JoinObstacles obstacles(c.graph, grouping, target, c.options.placement_obstacle);
  const ir::Placements placed = ir::find_placements(c.graph);
  for (ir::Group& group : grouping.groups) {
    for (const NodeId id : group.nodes) {
      if (!is_concat(c.graph.node(id)) || !obstacles.is_stored(id)) continue;
      const bool yes = ir::joins_in_place(c.graph.node(id));
      std::string reason = yes ? "its parts are made where they lie in it" + copied_parts(c, obstacles, placed, id)
                               : obstacles.of_concat(id);
      if (reason.empty()) reason = "the kernels that this leads to do not store its parts there";
      group.notes.push_back(fmt::format("{} {}: {}", c.describe(id), yes ? "takes no kernel" : "is copied", reason));
      c.decisions.push_back({yes, "in place", c.describe(id), std::move(reason)});
    }
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
    for (NodeId anchor : anchors) fuse_prologue(context, anchor, target);
    for (NodeId anchor : anchors) fuse_back_to_back(context, anchor);
    keep_gathered_rows_apart(context, target);
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
  const ir::Placements placed = ir::find_placements(graph);
  for (Partition::Cluster cluster : context.partition.order()) {
    ir::Group& group = grouping.groups.emplace_back(make_group(context, cluster));
    for (const auto* values : {&group.inputs, &group.outputs}) {
      for (const ir::ValueId v : *values) {
        if (const auto at = placed.find(v); at != placed.end()) group.placed.insert(*at);
      }
    }
  }
  if (options.placement_obstacle && options.policy == FusionPolicy::kStitch) explain_joins(context, grouping, target);
  grouping.decisions = std::move(context.decisions);
  return grouping;
}

}  // namespace heddle::passes
