#include "passes/boundaries/narrow_boundaries.h"

#include <map>

#include "ir/analysis/decisions.h"
#include "ir/rewrite.h"

namespace heddle::passes {
namespace {

// Below this many elements a store takes the same time in f32.
constexpr int64_t kFewElements = 4096;
// A sum of more terms may leave the range of f16.
constexpr int64_t kMostTerms = 64;

constexpr uint32_t kNoGroup = ~0u;

DType narrow_type(const PassContext& context) {
  return context.precision == Precision::kBF16 ? DType::kBF16 : DType::kF16;
}

// What computes a value, behind changes of its layout.
const Node& root_of(const ir::Graph& graph, ValueId v) {
  const Node* node = &graph.producer(v);
  while (ir::class_of(node->op) == OpClass::kLayout && node->op != Op::kConcat) node = &graph.producer(node->inputs[0]);
  return *node;
}

bool fits(const ir::Graph& graph, ValueId v, DType narrow) {
  const Node& node = root_of(graph, v);
  switch (node.op) {
    case Op::kExp:
    case Op::kPow:
    case Op::kRsqrt:
    case Op::kRandom:
    case Op::kBitcast:
      return false;
    case Op::kMul:
      return node.inputs[0] != node.inputs[1];
    case Op::kCast:
      return graph.dtype(node.inputs[0]) == narrow;
    case Op::kReduce:
      return element_count(graph.shape(node.inputs[0])) <= kMostTerms * element_count(graph.shape(node.outputs[0]));
    default:
      return ir::is_elementwise(node.op) || ir::class_of(node.op) == OpClass::kContraction;
  }
}

class Boundaries {
 public:
  Boundaries(const ir::Graph& graph, const PassContext& context)
      : graph_(graph),
        narrow_(narrow_type(context)),
        group_of_(graph.nodes().size(), kNoGroup),
        stored_(graph.value_count()) {
    const ir::Grouping grouping = context.group(graph);
    const std::vector<bool> decides = ir::feed_decisions(graph);
    for (uint32_t i = 0; i < grouping.groups.size(); ++i) {
      const ir::Group& group = grouping.groups[i];
      for (NodeId id : group.nodes) group_of_[id] = i;
      if (group.kind == ir::GroupKind::kControl || group.kind == ir::GroupKind::kTile) continue;
      for (ValueId v : group.outputs) {
        stored_[v] = graph.dtype(v) == DType::kF32 && element_count(graph.shape(v)) >= kFewElements && !decides[v] &&
                     fits(graph, v, narrow_);
      }
    }
    for (const ir::Graph::Port& port : graph.outputs()) stored_[port.value] = false;
    for (const ir::Group& group : grouping.groups) {
      if (group.kind != ir::GroupKind::kControl && group.kind != ir::GroupKind::kTile) continue;
      for (ValueId v : group.inputs) stored_[v] = false;
    }
  }

  ir::Graph run() {
    ir::Rewriter rewriter(graph_);
    return rewriter.run([this](ir::Rewriter& r, const Node& node) { return visit(r, node); });
  }

 private:
  uint32_t group_of(ValueId v) const { return group_of_[graph_.value(v).producer]; }

  std::optional<std::vector<ValueId>> visit(ir::Rewriter& r, const Node& node) {
    if (node.op == Op::kCast && stored_[node.inputs[0]] && graph_.dtype(node.outputs[0]) == narrow_) {
      return std::vector{rounded(r, node.inputs[0])};
    }
    bool changed = false;
    std::vector<ValueId> inputs;
    for (ValueId v : node.inputs) {
      const bool crossed = stored_[v] && group_of(v) != group_of(node.outputs[0]);
      changed |= crossed;
      // A cast of its own for each reader, so that no kernel widens the value for others.
      inputs.push_back(crossed ? r.emit(Op::kCast, {rounded(r, v)}, {{"to", DType::kF32}}) : r(v));
    }
    if (!changed) return std::nullopt;
    return r.target().node(r.target().add(node.op, std::move(inputs), node.attrs, node.origins)).outputs;
  }

  ValueId rounded(ir::Rewriter& r, ValueId v) {
    const auto [at, is_new] = rounded_.try_emplace(v, 0);
    if (is_new) at->second = r.target().emit(Op::kCast, {r(v)}, {{"to", narrow_}}, graph_.producer(v).origins);
    return at->second;
  }

  const ir::Graph& graph_;
  const DType narrow_;
  std::vector<uint32_t> group_of_;  // by node
  std::vector<bool> stored_;        // by value: in 16 bits, for the readers of other groups
  std::map<ValueId, ValueId> rounded_;
};

}  // namespace

ir::Graph narrow_boundaries(const ir::Graph& graph, const PassContext& context) {
  return Boundaries(graph, context).run();
}

}  // namespace heddle::passes
