#include "passes/simplify/drop_empty.h"

#include <algorithm>
#include <memory>

#include "ir/reference/array.h"
#include "ir/reference/eval.h"
#include "ir/rewrite.h"

namespace heddle::passes {
namespace {

using ir::Graph;
using Results = std::optional<std::vector<ValueId>>;

bool is_empty(const Graph& graph, ValueId v) {
  return element_count(graph.shape(v)) == 0;
}

bool all_empty(const Graph& graph, const std::vector<ValueId>& values) {
  return std::all_of(values.begin(), values.end(), [&](ValueId v) { return is_empty(graph, v); });
}

bool runs_no_iteration(const Graph& graph, const Node& node) {
  if (node.op != Op::kLoop) return false;
  if (node.attrs.has("trip") && node.attrs.integer("trip") == 0) return true;
  const Tensor* trip = graph.constant_of(node.inputs[0]);
  return trip != nullptr && trip->values<int64_t>()[0] <= 0;
}

// True if running a node has an effect besides its results: calls may fail, in bodies too.
bool has_effect(const Node& node) {
  if (node.op == Op::kCall) return true;
  return std::any_of(node.attrs.begin(), node.attrs.end(), [](const auto& attr) {
    const auto* body = std::get_if<std::shared_ptr<const Graph>>(&attr.second);
    return body != nullptr && std::any_of((*body)->nodes().begin(), (*body)->nodes().end(), has_effect);
  });
}

bool is_source(Op op) {
  return op == Op::kParameter || op == Op::kConstant;
}

// True if a node becomes broadcasts of a scalar because its results have no elements.
bool becomes_empty(const Graph& graph, const Node& node) {
  if (is_source(node.op) || !all_empty(graph, node.outputs) || has_effect(node)) return false;
  return node.op != Op::kBroadcast || graph.producer(node.inputs[0]).op != Op::kConstant;
}

ValueId filled(ir::Rewriter& r, Tensor value, const Shape& shape) {
  return r.emit(Op::kBroadcast, {r.constant(std::move(value))}, {{"shape", shape}, {"dims", Ints{}}});
}

ValueId zeros(ir::Rewriter& r, const ir::TensorType& type) {
  return filled(r, Tensor(type.dtype, {}), type.shape);
}

// The identity of a reduction, as a scalar.
Tensor reduced_nothing(const std::string& kind, DType dtype) {
  Graph graph;
  const ValueId none = graph.constant(Tensor(dtype, {0}));
  graph.output("y", graph.emit(Op::kReduce, {none}, {{"kind", kind}, {"dims", Ints{0}}}));
  return ir::to_tensor(ir::evaluate(graph, {}, {.round = true, .observe = {}})[0]);
}

// The result of a node that has an empty operand but a result with elements.
std::optional<ValueId> combined_nothing(ir::Rewriter& r, const Node& node) {
  const Graph& graph = r.source();
  const ir::TensorType& type = graph.type(node.outputs[0]);
  switch (node.op) {
    case Op::kDot:
    case Op::kConv:
      return zeros(r, type);
    case Op::kReduce:
    case Op::kWindowReduce:
      return filled(r, reduced_nothing(node.attrs.text("kind"), type.dtype), type.shape);
    case Op::kPad:
      return r.emit(Op::kBroadcast, {r(node.inputs[1])}, {{"shape", type.shape}, {"dims", Ints{}}});
    case Op::kScatterElements:
    case Op::kScatterNd:
      return r(node.inputs[0]);
    case Op::kConcat: {
      std::vector<ValueId> parts;
      for (ValueId v : node.inputs) {
        if (!is_empty(graph, v)) parts.push_back(r(v));
      }
      return parts.size() == 1 ? parts[0] : r.emit(Op::kConcat, std::move(parts), node.attrs);
    }
    default:
      return std::nullopt;
  }
}

Results without_empty(ir::Rewriter& r, const Node& node) {
  const Graph& graph = r.source();
  if (is_source(node.op)) return std::nullopt;
  std::vector<ValueId> results;
  if (becomes_empty(graph, node)) {
    for (ValueId v : node.outputs) results.push_back(zeros(r, graph.type(v)));
    return results;
  }
  if (runs_no_iteration(graph, node)) {
    const auto states = static_cast<size_t>(node.attrs.integer("states"));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      results.push_back(i < states ? r(node.inputs[2 + i]) : zeros(r, graph.type(node.outputs[i])));
    }
    return results;
  }
  const bool some_empty =
      std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return is_empty(graph, v); });
  if (!some_empty || node.outputs.size() != 1 || is_empty(graph, node.outputs[0])) return std::nullopt;
  if (const auto result = combined_nothing(r, node)) return {{*result}};
  return std::nullopt;
}

}  // namespace

bool has_empty(const Graph& graph, const PassContext&) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
    if (becomes_empty(graph, node) || runs_no_iteration(graph, node)) return true;
    return !is_source(node.op) &&
           std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return is_empty(graph, v); });
  });
}

Graph drop_empty(const Graph& graph, const PassContext&) {
  return ir::Rewriter(graph).run(without_empty);
}

}  // namespace heddle::passes
