#include "passes/fusion/side_values.h"

#include <algorithm>
#include <set>
#include <unordered_set>

namespace heddle::passes {
namespace {

using Role = FusionContext::Role;

// Of an epilogue that holds them in registers beside the sums.
constexpr size_t kMostSideNodes = 32, kMostSideOperands = 2;  // operands as large as the result
constexpr int kMostSideResults = 2;
constexpr int64_t kSmallPart = 16;  // a value with this part of the result's elements costs little wherever it is made

class SideFinder {
 public:
  SideFinder(const FusionContext& c, NodeId anchor, int64_t count, const std::function<bool(NodeId)>& inside)
      : c_(c), graph_(c.graph), anchor_(anchor), count_(count), inside_(inside) {}

  std::optional<SideValues> find(ValueId v) {
    if (!take(v) || nodes_.empty() || !take_readers() || operands_.size() > kMostSideOperands) return std::nullopt;
    SideValues found;
    found.nodes.assign(nodes_.rbegin(), nodes_.rend());
    const auto rest = std::stable_partition(found.nodes.begin(), found.nodes.end(),
                                            [this](NodeId id) { return is_read_outside(id); });
    found.results = static_cast<int>(rest - found.nodes.begin());
    return found.results <= kMostSideResults ? std::optional(found) : std::nullopt;
  }

 private:
  bool is_small(ValueId v) const { return element_count(graph_.shape(v)) * kSmallPart <= count_; }
  bool may_be_taken(NodeId id) const {
    const Node& node = graph_.node(id);
    const bool is_free = c_.role[id] == Role::kMemory && !inside_(id) && node.outputs.size() == 1;
    const bool has_form = ir::is_elementwise(node.op) || node.op == Op::kReshape ||
                          (node.op == Op::kBroadcast && is_small(node.inputs[0]));
    return is_free && has_form && element_count(graph_.shape(node.outputs[0])) == count_;
  }

  // Takes what computes `v`; false if something does not go into an epilogue.
  bool take(ValueId v) {
    const NodeId id = graph_.value(v).producer;
    const Node& node = graph_.node(id);
    if (nodes_.contains(id)) return true;
    if (may_be_taken(id)) {
      nodes_.insert(id);
      return nodes_.size() <= kMostSideNodes &&
             std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId operand) { return take(operand); });
    }
    if (node.op == Op::kConstant) return true;
    if (inside_(id) || (id > anchor_ && waits_for(c_, id, anchor_))) return false;
    if (!is_small(v)) operands_.insert(v);
    const bool is_stored = node.op == Op::kParameter || c_.role[id] != Role::kMemory;
    return is_small(v) || (is_stored && element_count(graph_.shape(v)) <= count_);
  }

  bool is_read_outside(NodeId id) const {
    const ValueId made = graph_.node(id).outputs[0];
    return c_.is_output[made] || std::any_of(c_.users[made].begin(), c_.users[made].end(),
                                             [&](NodeId user) { return !nodes_.contains(user) && !inside_(user); });
  }

  // Takes the elementwise readers of what is taken, until all that others read has 16 bits.
  bool take_readers() {
    std::vector<NodeId> open(nodes_.begin(), nodes_.end());
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      const ValueId made = graph_.node(id).outputs[0];
      for (const NodeId user : c_.users[made]) {
        if (nodes_.contains(user) || inside_(user) || !may_be_taken(user)) continue;
        const auto& operands = graph_.node(user).inputs;
        const std::set<NodeId> before = nodes_;
        nodes_.insert(user);
        if (!std::all_of(operands.begin(), operands.end(), [&](ValueId v) { return take(v); })) {
          nodes_ = before;
          continue;
        }
        if (nodes_.size() > kMostSideNodes) return false;
        for (const NodeId added : nodes_) {
          if (!before.contains(added)) open.push_back(added);
        }
      }
    }
    return std::none_of(nodes_.begin(), nodes_.end(), [&](NodeId id) {
      return is_read_outside(id) && size_of(graph_.dtype(graph_.node(id).outputs[0])) > 2;
    });
  }

  const FusionContext& c_;
  const ir::Graph& graph_;
  const NodeId anchor_;
  const int64_t count_;
  const std::function<bool(NodeId)>& inside_;
  std::set<NodeId> nodes_;
  std::set<ValueId> operands_;
};

}  // namespace

bool waits_for(const FusionContext& c, NodeId later, NodeId earlier) {
  constexpr size_t kMostSteps = 256;
  std::vector<NodeId> open{earlier};
  std::unordered_set<NodeId> seen;
  while (!open.empty() && seen.size() < kMostSteps) {
    const NodeId id = open.back();
    open.pop_back();
    for (const ValueId v : c.graph.node(id).outputs) {
      for (const NodeId user : c.users[v]) {
        if (user == later) return true;
        if (user < later && seen.insert(user).second) open.push_back(user);
      }
    }
  }
  return false;
}

std::optional<SideValues> find_side_values(const FusionContext& context, ValueId v, NodeId anchor, int64_t count,
                                           const std::function<bool(NodeId)>& inside) {
  return SideFinder(context, anchor, count, inside).find(v);
}

}  // namespace heddle::passes
