#include <algorithm>
#include <optional>
#include <queue>
#include <set>

#include "base/check.h"
#include "passes/fusion/context.h"

namespace heddle::passes {
namespace {

using Role = FusionContext::Role;

// Collects the nodes of an attention without changing the partition.
class AttentionNodes {
 public:
  AttentionNodes(const FusionContext& context, const ir::Attention& found)
      : c_(context), graph_(context.graph), found_(found) {
    nodes_.insert(found.inside.begin(), found.inside.end());
    nodes_.insert(found.scores_product);
    nodes_.insert(found.values_product);
    const Shape& scores = graph_.shape(graph_.node(found.scores_product).outputs[0]);
    if (scores.size() >= 2) plane_ = scores[scores.size() - 1] * scores[scores.size() - 2];
  }

  // Why these nodes cannot be one kernel; empty where they can.
  std::string refusal() const {
    for (const NodeId id : nodes_) {
      const bool product = id == found_.scores_product || id == found_.values_product;
      if (c_.role[id] != (product ? Role::kAnchor : Role::kMemory)) return "one of its nodes belongs to another kernel";
      if (graph_.node(id).outputs[0] != found_.result && !stays_inside(id)) {
        return fmt::format("{} is needed outside of it", c_.describe(id));
      }
    }
    return {};
  }

  void grow() {
    nodes_.insert(found_.views.begin(), found_.views.end());
    take_sides();
    take_stores();
  }

  ir::Group group() const {
    ir::Group group = c_.group_of({nodes_.begin(), nodes_.end()});
    group.kind = ir::GroupKind::kAttention;
    group.anchor = found_.values_product;
    return group;
  }

 private:
  bool stays_inside(NodeId id) const {
    const ValueId v = graph_.node(id).outputs[0];
    return !c_.is_output[v] &&
           std::all_of(c_.users[v].begin(), c_.users[v].end(), [&](NodeId user) { return nodes_.contains(user); });
  }

  // Takes the nodes that make operands of the scores alone, from the readers upwards: broadcasts and other changes of
  // layout, values for every row and key, and values that depend on positions only.
  void take_sides() {
    std::priority_queue<NodeId> open;
    const auto open_inputs = [&](NodeId id) {
      for (const ValueId v : graph_.node(id).inputs) open.push(graph_.value(v).producer);
    };
    for (const NodeId id : found_.inside) open_inputs(id);
    while (!open.empty()) {
      const NodeId id = open.top();
      open.pop();
      if (nodes_.contains(id) || c_.role[id] != Role::kMemory || !is_side(graph_.node(id))) continue;
      if (!stays_inside(id)) continue;
      nodes_.insert(id);
      open_inputs(id);
    }
  }
  bool is_side(const Node& node) const {
    if (node.op == Op::kBroadcast || node.op == Op::kReshape || c_.of_positions[node.outputs[0]]) return true;
    const bool plain = ir::is_elementwise(node.op) || node.op == Op::kIota || node.op == Op::kSlice;
    return plain && element_count(graph_.shape(node.outputs[0])) >= plane_;
  }

  // Changes of the result's layout, and a cast to the type of the operands.
  void take_stores() {
    const DType type = graph_.dtype(graph_.node(found_.values_product).inputs[1]);
    ValueId result = found_.result;
    while (!c_.is_output[result] && !c_.users[result].empty()) {
      const NodeId user = c_.users[result][0];
      const Node& node = graph_.node(user);
      const bool layout = node.op == Op::kReshape || node.op == Op::kTranspose;
      const bool cast = node.op == Op::kCast && graph_.dtype(node.outputs[0]) == type && graph_.dtype(result) != type;
      if (c_.role[user] != Role::kMemory || !(layout || cast) || !c_.only_read_by(result, user)) return;
      nodes_.insert(user);
      result = node.outputs[0];
    }
  }

  const FusionContext& c_;
  const ir::Graph& graph_;
  const ir::Attention& found_;
  std::set<NodeId> nodes_;
  int64_t plane_ = 0;  // scores of one head
};

// What was found at a product.
struct Found {
  std::optional<ir::Attention> attention;
  ir::Group group{};  // without nodes where it is not to be one kernel
  std::string reason;
  bool has_gathers = false;  // among what operands are read through
};

Found attention_at(const FusionContext& c, NodeId anchor, bool through_gathers) {
  Found result;
  const auto is_gather = [&](NodeId id) { return c.graph.node(id).op == Op::kGather; };
  const auto may_view = [&](NodeId view, NodeId reader) {
    return c.role[view] == Role::kMemory && c.only_read_by(c.graph.node(view).outputs[0], reader) &&
           (through_gathers || !is_gather(view));
  };
  result.attention = c.options.find_attention(anchor, may_view, &result.reason);
  if (!result.attention) return result;
  const std::vector<NodeId>& views = result.attention->views;
  result.has_gathers = std::any_of(views.begin(), views.end(), is_gather);
  AttentionNodes nodes(c, *result.attention);
  result.reason = nodes.refusal();
  if (!result.reason.empty()) return result;
  nodes.grow();
  result.group = nodes.group();
  if (!c.options.can_attend(result.group, &result.reason)) result.group.nodes.clear();
  return result;
}

}  // namespace

void fuse_attention(FusionContext& c, NodeId anchor) {
  if (!c.options.rules.attention || !c.options.find_attention) return;
  if (c.graph.node(anchor).op != Op::kDot || c.role[anchor] != Role::kAnchor) return;
  // Keys and values that a gather takes from pages are read through its table, or by a kernel of its own first.
  const Found in_pages = attention_at(c, anchor, true);
  Found found = in_pages;
  if (in_pages.has_gathers && in_pages.group.nodes.empty()) {
    found = attention_at(c, anchor, false);
    found.reason += fmt::format(" (keys are gathered from their pages first: {})", in_pages.reason);
  }
  if (!found.attention) {
    if (!found.reason.empty()) c.decisions.push_back({false, "attention", c.describe(anchor), found.reason});
    return;
  }
  const ir::Group& group = found.group;
  c.decide(!group.nodes.empty(), "attention", found.attention->scores_product, anchor, found.reason);
  if (group.nodes.empty()) return;
  // Every result but the last is read inside, so no path leads out of the group and back. Neighbours first.
  const auto merge = [&](NodeId id) {
    HEDDLE_CHECK(c.partition.merge(id, anchor), "{} is not between the products", c.describe(id));
    c.role[id] = Role::kEpilogue;
  };
  const auto at = std::find(group.nodes.begin(), group.nodes.end(), anchor);
  std::for_each(at + 1, group.nodes.end(), merge);
  std::for_each(std::make_reverse_iterator(at), group.nodes.rend(), merge);
  c.chain_of[anchor] = ir::GroupKind::kAttention;
}

}  // namespace heddle::passes
