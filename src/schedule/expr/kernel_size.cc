#include "schedule/expr/kernel_size.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "schedule/expr/expr_walk.h"
#include "schedule/expr/inline.h"

namespace heddle::schedule {

using ir::NodeId;
using ir::Op;
using ir::ValueId;

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
      : graph_(graph), most_(graph.nodes().size()), cut_(graph.nodes().size()) {}

  std::set<ValueId> run() {
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
  NodeId producer(ValueId v) const { return graph_.value(v).producer; }
  // Whether readers load a value.
  bool stands_for_itself(ValueId v) const {
    const NodeId id = producer(v);
    const Op op = graph_.node(id).op;
    return cut_[id] || op == Op::kParameter || (!Inliner::inlines(op) && op != Op::kReduce && op != Op::kArgReduce);
  }

  // Of what a node is computed from, down to `known` and to what kernels before it make.
  int64_t weight(NodeId root, NodeId known) const {
    int64_t sum = 0;
    above(root, known, [&](NodeId id, bool is_loaded) { sum += is_loaded ? kLoadWeight : weight_of(graph_.node(id)); });
    return sum;
  }
  template <typename Visit>
  void above(NodeId root, NodeId known, const Visit& visit) const {
    DagWalk().run(
        root,
        [this](NodeId id, const auto& next) {
          for (const ValueId v : graph_.node(id).inputs) next(producer(v));
        },
        [&](NodeId id) {
          const bool is_loaded = id != root && (id == known || stands_for_itself(graph_.node(id).outputs[0]));
          visit(id, is_loaded);
          return !is_loaded;
        },
        [](NodeId) {});
  }

  // The value through which nearly all of what a node is computed from reaches it, if there is one: the smallest such
  // value, then the nearest. Else its largest operands.
  void cut_above(NodeId id) {
    std::vector<NodeId> open;
    above(id, id, [&](NodeId other, bool is_loaded) {
      if (!is_loaded && other != id && can_be_handed_over(graph_, graph_.node(other).outputs[0])) open.push_back(other);
    });
    std::optional<std::tuple<int64_t, int64_t, NodeId>> best;
    for (const NodeId other : open) {
      const int64_t rest = weight(id, other);
      const std::tuple found(bytes(other), rest, other);
      if (rest <= kMostWeight / 2 && (!best || found < *best)) best = found;
    }
    if (best) cut(std::get<NodeId>(*best));
    while (!best && weight(id, id) > kMostWeight) {
      std::optional<std::pair<int64_t, NodeId>> heaviest;
      for (const ValueId v : graph_.node(id).inputs) {
        if (stands_for_itself(v) || !can_be_handed_over(graph_, v)) continue;
        const std::pair found(weight(producer(v), id), producer(v));
        if (!heaviest || *heaviest < found) heaviest = found;
      }
      if (!heaviest) break;
      cut(heaviest->second);
    }
    most_[id] = weight(id, id);
  }
  int64_t bytes(NodeId id) const {
    const ir::TensorType& type = graph_.type(graph_.node(id).outputs[0]);
    return element_count(type.shape) * static_cast<int64_t>(size_of(type.dtype));
  }
  void cut(NodeId id) {
    cut_[id] = true;
    cuts_.insert(graph_.node(id).outputs[0]);
  }

  const ir::Graph& graph_;
  std::vector<int64_t> most_;  // by node: at least its weight
  std::vector<bool> cut_;
  std::set<ValueId> cuts_;
};

}  // namespace

std::set<ValueId> cuts_for_size(const ir::Graph& graph) {
  return SizeCutter(graph).run();
}

}  // namespace heddle::schedule
