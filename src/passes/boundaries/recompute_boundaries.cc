#include "passes/boundaries/recompute_boundaries.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ir/rewrite.h"

namespace heddle::passes {
namespace {

constexpr size_t kMostRecomputed = 48;        // of a copied computation
constexpr int64_t kMostCostlyRecomputed = 4;  // of these: exponentials, divisions and the like
constexpr int64_t kFewBytesSaved = 1 << 20;   // of traffic, for which nothing is worth a copy
constexpr uint32_t kNoProducer = ~0u;

using Values = std::set<ValueId>;

// The nodes in one group from which a value is computed, and the values that these read from elsewhere.
struct Computation {
  std::set<NodeId> nodes;
  Values operands;
};

class Recomputations {
 public:
  Recomputations(const ir::Graph& graph, const PassContext& context)
      : graph_(graph),
        users_(ir::users(graph)),
        grouping_(context.group(graph)),
        group_of_(graph.nodes().size(), kNoProducer),
        is_output_(graph.value_count(), false) {
    for (const ir::Graph::Port& port : graph.outputs()) is_output_[port.value] = true;
    for (uint32_t i = 0; i < grouping_.groups.size(); ++i) {
      for (const NodeId id : grouping_.groups[i].nodes) group_of_[id] = i;
    }
    for (uint32_t i = 0; i < grouping_.groups.size(); ++i) choose(i);
  }

  ir::Graph run() {
    if (copied_.empty()) return graph_;
    return ir::Rewriter(graph_).run([this](ir::Rewriter& r, const Node& node) { return visit(r, node); });
  }

 private:
  uint32_t group_of(ValueId v) const { return group_of_[graph_.value(v).producer]; }
  int64_t bytes_of(ValueId v) const { return element_count(graph_.shape(v)) * size_of(graph_.dtype(v)); }

  // The values of other groups that group `at` computes itself.
  void choose(uint32_t at) {
    const ir::Group& reader = grouping_.groups[at];
    if (reader.kind != ir::GroupKind::kStitch && reader.kind != ir::GroupKind::kContraction) return;
    const std::set<NodeId> before = before_anchor(reader);
    std::map<ValueId, Computation> found;
    for (const ValueId v : reader.inputs) {
      if (!is_candidate(v, at, before)) continue;
      if (std::optional<Computation> one = computation_of(v, reader.kind)) found.emplace(v, *std::move(one));
    }
    Values operands;
    int64_t saved = 0;
    for (const auto& [v, one] : found) {
      operands.insert(one.operands.begin(), one.operands.end());
      saved += bytes_of(v) * (is_read_by_others(v, at) ? 1 : 2);
    }
    int64_t further = 0;
    for (const ValueId v : operands) {
      const bool is_read = std::find(reader.inputs.begin(), reader.inputs.end(), v) != reader.inputs.end();
      if (!is_read || found.contains(v)) further += bytes_of(v);
    }
    if (saved < further + kFewBytesSaved) return;
    for (auto& [v, one] : found) copied_.emplace(std::pair(at, v), std::move(one.nodes));
  }

  // What the product of a group is computed from within it: each tile would compute it again.
  std::set<NodeId> before_anchor(const ir::Group& group) const {
    std::set<NodeId> before;
    if (group.kind != ir::GroupKind::kContraction) return before;
    std::vector<NodeId> open{group.anchor};
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (group_of_[id] != group_of_[group.anchor] || !before.insert(id).second) continue;
      for (const ValueId v : graph_.node(id).inputs) open.push_back(graph_.value(v).producer);
    }
    return before;
  }

  bool is_candidate(ValueId v, uint32_t at, const std::set<NodeId>& before) const {
    if (group_of(v) == kNoProducer || grouping_.groups[group_of(v)].kind != ir::GroupKind::kStitch) return false;
    return std::all_of(users_[v].begin(), users_[v].end(), [&](NodeId id) {
      return group_of_[id] != at || (ir::is_elementwise(graph_.node(id).op) && !before.contains(id));
    });
  }

  bool is_read_by_others(ValueId v, uint32_t at) const {
    return is_output_[v] || std::any_of(users_[v].begin(), users_[v].end(),
                                        [&](NodeId id) { return group_of_[id] != at && group_of_[id] != group_of(v); });
  }

  // Nothing if it is more than elementwise operators, or too much.
  std::optional<Computation> computation_of(ValueId value, ir::GroupKind reader) const {
    const uint32_t group = group_of(value);
    const int64_t most_costly = reader == ir::GroupKind::kStitch ? kMostCostlyRecomputed : 0;  // as epilogues take
    Computation made;
    int64_t costly = 0;
    std::vector<ValueId> open{value};
    while (!open.empty()) {
      const ValueId v = open.back();
      open.pop_back();
      const NodeId id = graph_.value(v).producer;
      if (group_of_[id] != group) {
        made.operands.insert(v);
        continue;
      }
      const Node& node = graph_.node(id);
      const bool repeats = node.op == Op::kBroadcast || node.op == Op::kReshape;
      if (!repeats && !ir::is_elementwise(node.op)) return std::nullopt;
      if (!made.nodes.insert(id).second) continue;
      costly += ir::is_costly(node.op);
      if (made.nodes.size() > kMostRecomputed || costly > most_costly) return std::nullopt;
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
    return made;
  }

  std::optional<std::vector<ValueId>> visit(ir::Rewriter& r, const Node& node) {
    if (node.outputs.empty()) return std::nullopt;
    const uint32_t at = group_of(node.outputs[0]);
    bool changed = false;
    std::vector<ValueId> inputs;
    for (const ValueId v : node.inputs) {
      const auto found = copied_.find({at, v});
      changed |= found != copied_.end();
      inputs.push_back(found == copied_.end() ? r(v) : copy_of(r, at, v, found->second));
    }
    if (!changed) return std::nullopt;
    return r.target().node(r.target().add(node.op, std::move(inputs), node.attrs, node.origins)).outputs;
  }

  // Values of one group share what their computations have in common.
  ValueId copy_of(ir::Rewriter& r, uint32_t at, ValueId value, const std::set<NodeId>& nodes) {
    for (const NodeId id : nodes) {
      const Node& node = graph_.node(id);
      const auto [place, is_new] = copies_.try_emplace({at, node.outputs[0]}, 0);
      if (!is_new) continue;
      std::vector<ValueId> inputs;
      for (const ValueId v : node.inputs) {
        const auto copy = copies_.find({at, v});
        inputs.push_back(copy == copies_.end() ? r(v) : copy->second);
      }
      place->second = r.target().emit(node.op, std::move(inputs), node.attrs, node.origins);
    }
    return copies_.at({at, value});
  }

  const ir::Graph& graph_;
  const std::vector<std::vector<NodeId>> users_;
  const ir::Grouping grouping_;
  std::vector<uint32_t> group_of_;                                   // by node
  std::vector<bool> is_output_;                                      // by value
  std::map<std::pair<uint32_t, ValueId>, std::set<NodeId>> copied_;  // by reading group and value
  std::map<std::pair<uint32_t, ValueId>, ValueId> copies_;
};

}  // namespace

ir::Graph recompute_boundaries(const ir::Graph& graph, const PassContext& context) {
  return Recomputations(graph, context).run();
}

}  // namespace heddle::passes
