#include "schedule/expr/kernel_size.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "schedule/expr/expr_walk.h"
#include "schedule/expr/inline.h"

namespace heddle::schedule {

int64_t compile_weight(Op op) {
  switch (op) {
    case Op::kConstant:
      return 0;
    case Op::kRandom:
    case Op::kReduce:
    case Op::kArgReduce:
      return 8;
    default:
      return ir::cost_of(op).code;
  }
}

int64_t compile_weight(const ExprPool& pool, const std::vector<ExprId>& roots) {
  int64_t weight = 0;
  visit_exprs(pool, roots,
              [&](ExprId e) { weight += pool[e].kind == Expr::Kind::kOp ? compile_weight(pool[e].op) : 1; });
  return weight;
}

std::map<ExprId, double> statements(const ExprPool& pool, ExprId root) {
  std::map<ExprId, double> sides;
  const auto count = [&](ExprId of) {
    double sum = 0;
    for (const ExprId e : unconditional(pool, {of})) {
      sum += 1;
      if (pool[e].kind != Expr::Kind::kGuard) continue;
      for (const ExprId side : pool[e].args) sum += sides.at(side);
    }
    sides.emplace(of, sum);
  };
  // Sides of inner guards first.
  ExprWalk(pool).run(
      root, [](ExprId) { return true; },
      [&](ExprId e) {
        if (pool[e].kind != Expr::Kind::kGuard) return;
        for (const ExprId side : pool[e].args) {
          if (!sides.contains(side)) count(side);
        }
      });
  if (!sides.contains(root)) count(root);
  return sides;
}

bool can_be_handed_over(const ir::Graph& graph, ValueId value) {
  const Op op = graph.producer(value).op;
  return ir::class_of(op) != ir::OpClass::kSource && element_count(graph.shape(value)) > 0;
}

namespace {

constexpr int64_t kLoadWeight = 4;  // an operand, too

// What moves elements costs a condition for each part or side.
int64_t weight_of(const ir::Node& node) {
  constexpr int64_t kCondition = 4;
  if (node.op == Op::kConcat) return kCondition * static_cast<int64_t>(node.inputs.size());
  return node.op == Op::kPad ? 2 * kCondition : compile_weight(node.op);
}

// Walks from the first node to the last and cuts where what lies above one becomes too much.
class SizeCutter {
 public:
  explicit SizeCutter(const ir::Graph& graph)
      : graph_(graph),
        most_(graph.nodes().size()),
        cut_(graph.nodes().size()),
        counted_(graph.nodes().size(), kNever) {}

  std::map<ValueId, uint32_t> run() {
    for (NodeId id = 0; id < graph_.nodes().size(); ++id) {
      const ir::Node& node = graph_.node(id);
      most_[id] = weight_of(node);
      for (const ValueId v : node.inputs) most_[id] += stands_for_itself(v) ? kLoadWeight : most_[producer(v)];
      if (most_[id] <= kMostWeight) continue;
      // Counting what is shared once may show that it is less.
      most_[id] = weight(id, id);
      if (most_[id] > kMostWeight) cut_above(id);
    }
    return std::move(cuts_);
  }

 private:
  static constexpr int64_t kMostRest = kMostWeight / 2;  // weight that a node may keep after a cut

  NodeId producer(ValueId v) const { return graph_.value(v).producer; }
  // Whether readers load a value.
  bool stands_for_itself(ValueId v) const {
    const NodeId id = producer(v);
    const Op op = graph_.node(id).op;
    return cut_[id] || op == Op::kParameter || (!Inliner::inlines(op) && op != Op::kReduce && op != Op::kArgReduce);
  }

  // Of what a node is computed from, down to `known` and to what kernels before it make. In a graph whose values have
  // many readers each node asks.
  int64_t weight(NodeId root, NodeId known) {
    const uint32_t count = ++counts_;
    int64_t sum = 0;
    counted_[root] = count;
    for (std::vector<NodeId> open{root}; !open.empty();) {
      const NodeId id = open.back();
      open.pop_back();
      if (id != root && (id == known || stands_for_itself(graph_.node(id).outputs[0]))) {
        sum += kLoadWeight;
        continue;
      }
      sum += weight_of(graph_.node(id));
      for (const ValueId v : graph_.node(id).inputs) {
        const NodeId from = producer(v);
        if (std::exchange(counted_[from], count) != count) open.push_back(from);
      }
    }
    return sum;
  }

  // The value through which nearly all of what a node is computed from reaches it, if there is one: the smallest such
  // value, then the nearest. Else, or where others would compute again what lies behind that value, the values between
  // two halves.
  void cut_above(NodeId id) {
    const std::vector<NodeId> cone = made_for(id);
    const int64_t all = weight(id, id);
    std::optional<std::tuple<int64_t, int64_t, NodeId>> best;
    for (const NodeId other : cone) {
      // most_ is an upper bound, so that at least the difference is left.
      if (other == id || all - most_[other] > kMostRest || !can_be_handed_over(graph_, result_of(other))) continue;
      const int64_t rest = weight(id, other);
      const std::tuple found(bytes(other), rest, other);
      if (rest <= kMostRest && (!best || found < *best)) best = found;
    }
    if (best && !is_read_inside(std::get<NodeId>(*best))) {
      cut(std::get<NodeId>(*best));
    } else {
      cut_between(cone);
    }
    ++boundaries_;
    most_[id] = weight(id, id);
  }

  // Whether others read what a value is computed from, so that they would compute costly values again.
  bool is_read_inside(NodeId end) {
    const std::vector<NodeId> cone = made_for(end);
    const std::unordered_set<NodeId> inside(cone.begin(), cone.end());
    std::unordered_set<NodeId> costly;  // to compute, with all below
    for (const NodeId id : cone) {
      const ir::Node& node = graph_.node(id);
      const bool is_costly =
          ir::is_costly(node.op) ||
          std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return costly.contains(producer(v)); });
      if (!is_costly) continue;
      costly.insert(id);
      const auto& readers = users()[result_of(id)];
      if (id != end && !std::all_of(readers.begin(), readers.end(), [&](NodeId r) { return inside.contains(r); })) {
        return true;
      }
    }
    return false;
  }

  // What is computed for a node, operands first.
  std::vector<NodeId> made_for(NodeId root) const {
    std::vector<NodeId> order;
    DagWalk().run(
        root,
        [this](NodeId id, const auto& next) {
          for (const ValueId v : graph_.node(id).inputs) next(producer(v));
        },
        [&](NodeId id) { return id == root || !stands_for_itself(result_of(id)); },
        [&](NodeId id) { order.push_back(id); });
    return order;
  }

  // Cuts all values that lead from the nodes up to some place in an order to others, so that neither side computes
  // again what the other does: at the place with the fewest bytes, then the latest.
  void cut_between(const std::vector<NodeId>& order) {
    std::unordered_map<NodeId, size_t> place;
    for (size_t i = 0; i < order.size(); ++i) place.emplace(order[i], i);
    const size_t last = order.size() - 1;
    std::vector<size_t> wanted_until(order.size());  // the place of the last reader
    std::vector<std::vector<size_t>> done(order.size());
    for (size_t i = 0; i < last; ++i) {
      for (const NodeId user : users()[result_of(order[i])]) {
        const auto at = place.find(user);
        wanted_until[i] = std::max(wanted_until[i], at == place.end() ? last : at->second);
      }
      done[wanted_until[i]].push_back(i);
    }
    int64_t rest = 0, handed = 0, count = 0;
    for (const NodeId id : order) rest += weight_of(graph_.node(id));
    std::optional<std::tuple<int64_t, int64_t, size_t>> best;
    for (size_t i = 0; i < last; ++i) {
      rest -= weight_of(graph_.node(order[i]));
      handed += handed_bytes(order[i]);
      ++count;
      for (const size_t of : done[i]) handed -= handed_bytes(order[of]), --count;
      const int64_t weight = rest + kLoadWeight * count;
      const std::tuple found(handed, weight, i);
      if ((weight <= kMostRest || i + 1 == last) && (!best || found < *best)) best = found;
    }
    if (!best) return;
    const size_t end = std::get<size_t>(*best);
    for (size_t i = 0; i <= end; ++i) {
      if (wanted_until[i] <= end) continue;
      const NodeId id = handed_for(order[i]);
      if (can_be_handed_over(graph_, result_of(id))) cut(id);
    }
  }

  // The operand of a broadcast, else the node itself: broadcasts are repeated, not handed over.
  NodeId handed_for(NodeId id) const {
    while (graph_.node(id).op == Op::kBroadcast) id = producer(graph_.node(id).inputs[0]);
    return id;
  }
  int64_t handed_bytes(NodeId id) const {
    const NodeId handed = handed_for(id);
    return can_be_handed_over(graph_, result_of(handed)) ? bytes(handed) : 0;
  }
  const std::vector<std::vector<NodeId>>& users() {
    if (users_.empty()) users_ = ir::users(graph_);
    return users_;
  }
  ValueId result_of(NodeId id) const { return graph_.node(id).outputs[0]; }
  int64_t bytes(NodeId id) const {
    const ir::TensorType& type = graph_.type(result_of(id));
    return element_count(type.shape) * static_cast<int64_t>(size_of(type.dtype));
  }
  void cut(NodeId id) {
    cut_[id] = true;
    cuts_.emplace(result_of(id), boundaries_);
  }

  const ir::Graph& graph_;
  std::vector<int64_t> most_;  // by node: at least its weight
  std::vector<bool> cut_;
  static constexpr uint32_t kNever = 0;
  std::vector<uint32_t> counted_;  // by node: the last call of weight() that reached it
  uint32_t counts_ = kNever;
  std::map<ValueId, uint32_t> cuts_;
  uint32_t boundaries_ = 0;
  std::vector<std::vector<NodeId>> users_;
};

}  // namespace

std::map<ValueId, uint32_t> cuts_for_size(const ir::Graph& graph) {
  return SizeCutter(graph).run();
}

}  // namespace heddle::schedule
