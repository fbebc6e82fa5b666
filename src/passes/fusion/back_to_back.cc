#include <algorithm>
#include <optional>

#include "base/check.h"
#include "passes/fusion/context.h"

namespace heddle::passes {
namespace {

using Role = FusionContext::Role;

bool is_product(Op op) {
  return op == Op::kDot || op == Op::kConv;
}

// Two groups, the second of which, of one contraction, multiplies a result of the first one.
struct Pair {
  NodeId first;   // the anchor
  ValueId inner;  // what the first group makes
  NodeId reader;  // of the second group
};

// The (last) anchor of the contractions in whose group a node is; nullopt where that has another kernel.
std::optional<NodeId> anchor_of(const FusionContext& c, NodeId id) {
  if (c.role[id] != Role::kAnchor && c.role[id] != Role::kEpilogue) return std::nullopt;
  const auto& nodes = c.partition.nodes(c.partition.cluster_of(id));
  std::optional<NodeId> last;
  for (const NodeId n : nodes) {
    if (c.role[n] == Role::kAnchor && (!last || n > *last)) last = n;
  }
  if (!last || c.chain_of[*last] == ir::GroupKind::kAttention || !is_product(c.graph.node(*last).op))
    return std::nullopt;
  return last;
}

// What makes the first operand of an anchor, above its prologue, where that is another such group.
std::optional<Pair> pair_of(const FusionContext& c, NodeId anchor) {
  NodeId reader = anchor;
  ValueId inner = c.graph.node(anchor).inputs[0];
  while (c.partition.same(c.graph.value(inner).producer, anchor)) {
    reader = c.graph.value(inner).producer;
    inner = c.graph.node(reader).inputs[0];
  }
  const auto first = anchor_of(c, c.graph.value(inner).producer);
  return first ? std::optional(Pair{*first, inner, reader}) : std::nullopt;
}

// Why the two groups cannot be one, whatever kernels there are; empty where they can.
std::string refusal(const FusionContext& c, NodeId anchor, const Pair& pair) {
  const Node& second = c.graph.node(anchor);
  if (pair.reader == anchor && second.inputs[0] == second.inputs[1]) return "both operands are the same value";
  for (const NodeId product : {anchor, pair.first}) {
    const auto& nodes = c.partition.nodes(c.partition.cluster_of(product));
    if (std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) { return c.graph.node(id).op == Op::kDequantize; })) {
      return "a kernel of one product reads packed weights";
    }
  }
  if (!c.only_read_by(pair.inner, pair.reader)) return "what the first one makes is needed elsewhere, too";
  const std::vector<ValueId> made = c.group_of(c.partition.nodes(c.partition.cluster_of(pair.first))).outputs;
  return made.size() == 1 ? "" : "the first one has other results";
}

}  // namespace

void fuse_back_to_back(FusionContext& c, NodeId anchor) {
  if (!c.options.rules.back_to_back || !c.options.can_run_back_to_back) return;
  if (!is_product(c.graph.node(anchor).op) || c.chain_of[anchor]) return;
  const auto pair = pair_of(c, anchor);
  if (!pair) return;
  std::string reason = refusal(c, anchor, *pair);
  bool yes = false;
  if (reason.empty()) {
    std::vector<NodeId> nodes = c.partition.nodes(c.partition.cluster_of(pair->first));
    const std::vector<NodeId>& more = c.partition.nodes(c.partition.cluster_of(anchor));
    nodes.insert(nodes.end(), more.begin(), more.end());
    ir::Group group = c.group_of(std::move(nodes));
    group.kind = ir::GroupKind::kBackToBack;
    group.anchor = anchor;
    yes = c.options.can_run_back_to_back(group, &reason);
  }
  c.decide(yes, "back_to_back", pair->first, anchor, std::move(reason));
  if (!yes) return;
  // The second group alone reads what the first one makes, so no path leads out and back.
  HEDDLE_CHECK(c.partition.merge(pair->first, anchor), "{} does not follow {}", c.describe(anchor),
               c.describe(pair->first));
  c.chain_of[pair->first] = c.chain_of[anchor] = ir::GroupKind::kBackToBack;
}

}  // namespace heddle::passes
