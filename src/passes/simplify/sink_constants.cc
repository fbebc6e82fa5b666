#include "passes/simplify/sink_constants.h"

#include <algorithm>
#include <map>
#include <memory>

#include "ir/rewrite.h"

namespace heddle::passes {
namespace {

using ir::Graph;

// For every node, true if it is computed from constants by operations on elements and movements of data.
std::vector<bool> constant_nodes(const Graph& graph) {
  std::vector<bool> constant;
  for (const Node& node : graph.nodes()) {
    const bool moves =
        ir::is_elementwise(node.op) || ir::class_of(node.op) == OpClass::kLayout || node.op == Op::kGather;
    constant.push_back(node.op == Op::kConstant || node.op == Op::kIota ||
                       (moves && std::all_of(node.inputs.begin(), node.inputs.end(),
                                             [&](ValueId v) { return constant[graph.value(v).producer]; })));
  }
  return constant;
}

// Builds a body in which copies of outer values replace the parameters in `sunk`.
class BodyBuilder {
 public:
  BodyBuilder(const Graph& outer, const Graph& body) : outer_(outer), body_(body) { result_.adopt_origins(body); }

  // `sunk`: outer values by position among the parameters.
  Graph build(const std::map<size_t, ValueId>& sunk) {
    std::map<ValueId, ValueId> inside;  // by value of the body
    for (size_t i = 0; i < body_.inputs().size(); ++i) {
      const ValueId parameter = body_.inputs()[i].value;
      if (!sunk.contains(i)) inside[parameter] = result_.parameter(body_.producer(parameter).attrs);
    }
    for (const auto& [i, value] : sunk) inside[body_.inputs()[i].value] = copied(value);
    for (const Node& node : body_.nodes()) {
      if (node.op == Op::kParameter) continue;
      std::vector<ValueId> inputs;
      for (const ValueId v : node.inputs) inputs.push_back(inside.at(v));
      const ir::NodeId id = result_.add(node.op, std::move(inputs), node.attrs, node.origins);
      for (size_t i = 0; i < node.outputs.size(); ++i) inside[node.outputs[i]] = result_.node(id).outputs[i];
    }
    for (const Graph::Port& port : body_.outputs()) result_.output(port.name, inside.at(port.value));
    return std::move(result_);
  }

 private:
  // A model file can make the computation arbitrarily deep, so the walk keeps its own stack.
  ValueId copied(ValueId wanted) {
    for (std::vector<ValueId> open{wanted}; !open.empty();) {
      const ValueId v = open.back();
      const Node& node = outer_.producer(v);
      const size_t before = open.size();
      if (!copies_.contains(v)) {
        for (const ValueId input : node.inputs) {
          if (!copies_.contains(input)) open.push_back(input);
        }
        if (open.size() > before) continue;
        std::vector<ValueId> inputs;
        for (const ValueId input : node.inputs) inputs.push_back(copies_.at(input));
        std::vector<ir::OriginId> origins;
        for (const ir::OriginId id : node.origins) origins.push_back(result_.origin(outer_.origin(id)));
        copies_[v] = result_.emit(node.op, std::move(inputs), node.attrs, std::move(origins));
      }
      open.pop_back();
    }
    return copies_.at(wanted);
  }

  const Graph &outer_, &body_;
  Graph result_;
  std::map<ValueId, ValueId> copies_;  // by outer value
};

}  // namespace

ir::Graph sink_constants(const Graph& graph, const PassContext&) {
  const std::vector<bool> constant = constant_nodes(graph);
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    if (node.op != Op::kLoop && node.op != Op::kIf) return std::nullopt;
    // The operands before `first` are not loop invariants; parameter 0 of a branch is operand 1.
    const size_t first = node.op == Op::kLoop ? 2 + static_cast<size_t>(node.attrs.integer("states")) : 1;
    const size_t offset = node.op == Op::kLoop ? 0 : 1;
    std::map<size_t, ValueId> sunk;
    std::vector<ValueId> operands;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (i >= first && constant[graph.value(node.inputs[i]).producer]) {
        sunk[i - offset] = node.inputs[i];
      } else {
        operands.push_back(r(node.inputs[i]));
      }
    }
    if (sunk.empty()) return std::nullopt;
    ir::Attrs attrs = node.attrs;
    for (const auto& [name, attr] : node.attrs) {
      if (const auto* body = std::get_if<std::shared_ptr<const Graph>>(&attr)) {
        attrs.set(name, std::make_shared<const Graph>(BodyBuilder(graph, **body).build(sunk)));
      }
    }
    const ir::NodeId id = r.target().add(node.op, std::move(operands), std::move(attrs), node.origins);
    return r.target().node(id).outputs;
  });
}

}  // namespace heddle::passes
