#include "passes/fusion/clone_masks.h"

#include <algorithm>
#include <map>

#include "ir/analysis/positions.h"
#include "ir/rewrite.h"

namespace heddle::passes {
namespace {

bool passes_on(Op op) {
  return ir::is_elementwise(op) || ir::class_of(op) == ir::OpClass::kLayout;
}

class Masks {
 public:
  explicit Masks(const ir::Graph& graph)
      : graph_(graph),
        readers_(ir::users(graph)),
        of_positions_(ir::of_positions(graph)),
        is_output_(graph.value_count(), false),
        after_product_(graph.value_count(), false),
        feeds_exponential_(graph.value_count(), false) {
    for (const ir::Graph::Port& port : graph.outputs()) is_output_[port.value] = true;
    const auto& nodes = graph.nodes();
    for (const Node& node : nodes) {
      const bool after = node.op == Op::kDot || (passes_on(node.op) && any(node.inputs, after_product_));
      for (const ValueId v : node.outputs) after_product_[v] = after;
    }
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      if (node->op != Op::kExp && !(passes_on(node->op) && any(node->outputs, feeds_exponential_))) continue;
      for (const ValueId v : node->inputs) feeds_exponential_[v] = true;
    }
  }

  // The operand of a node that scores meet as a mask.
  bool is_mask(const Node& reader, ValueId operand) const {
    return ir::is_elementwise(reader.op) && after_product_[reader.outputs[0]] && !after_product_[operand] &&
           feeds_exponential_[reader.outputs[0]] && graph_.shape(operand).size() >= 2;
  }

  // The nodes from which a mask is computed for each of its readers, in order; none where nothing else reads them.
  std::vector<NodeId> nodes_of(ValueId mask) const {
    constexpr size_t kMost = 96;
    const Shape& shape = graph_.shape(mask);
    const int64_t plane = shape[shape.size() - 2] * shape.back();
    std::vector<NodeId> nodes, open{graph_.value(mask).producer};
    bool is_shared = false;
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (std::find(nodes.begin(), nodes.end(), id) != nodes.end() || !is_part(graph_.node(id), plane)) continue;
      if (nodes.size() == kMost) return {};
      nodes.push_back(id);
      const ValueId value = graph_.node(id).outputs[0];
      is_shared = is_shared || readers_[value].size() > 1 || is_output_[value];
      for (const ValueId v : graph_.node(id).inputs) open.push_back(graph_.value(v).producer);
    }
    if (!is_shared) return {};
    std::sort(nodes.begin(), nodes.end());
    return nodes;
  }

 private:
  static bool any(const std::vector<ValueId>& values, const std::vector<bool>& of) {
    return std::any_of(values.begin(), values.end(), [&](ValueId v) { return of[v]; });
  }
  bool is_part(const Node& node, int64_t plane) const {
    if (node.op == Op::kConstant || node.outputs.empty()) return false;
    const ValueId value = node.outputs[0];
    if (of_positions_[value]) return true;
    const bool cheap = ir::is_cheap(node.op) || ir::class_of(node.op) == ir::OpClass::kLayout;
    return cheap && element_count(graph_.shape(value)) >= plane;
  }

  const ir::Graph& graph_;
  const std::vector<std::vector<NodeId>> readers_;
  const std::vector<bool> of_positions_;
  std::vector<bool> is_output_, after_product_, feeds_exponential_;
};

// The target's value of `mask` in a copy of the nodes that it is computed from.
ValueId copy_of(ir::Rewriter& r, const ir::Graph& graph, const std::vector<NodeId>& nodes, ValueId mask) {
  std::map<ValueId, ValueId> copies;
  for (const NodeId id : nodes) {
    const Node& node = graph.node(id);
    std::vector<ValueId> inputs;
    for (const ValueId v : node.inputs) inputs.push_back(copies.contains(v) ? copies.at(v) : r(v));
    copies[node.outputs[0]] = r.target().emit(node.op, std::move(inputs), node.attrs, node.origins);
  }
  return copies.at(mask);
}

}  // namespace

ir::Graph clone_masks(const ir::Graph& graph, const PassContext&) {
  const Masks masks(graph);
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    std::vector<ValueId> inputs = r(node.inputs);
    bool changed = false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (!masks.is_mask(node, v)) continue;
      const std::vector<NodeId> nodes = masks.nodes_of(v);
      if (nodes.empty()) continue;
      inputs[i] = copy_of(r, graph, nodes, v);
      changed = true;
    }
    if (!changed) return std::nullopt;
    return r.target().node(r.target().add(node.op, inputs, node.attrs, node.origins)).outputs;
  });
}

}  // namespace heddle::passes
