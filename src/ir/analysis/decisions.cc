#include "ir/analysis/decisions.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/one_of.h"
#include "ir/analysis/tolerance.h"
#include "ir/reference/scalar.h"
#include "ir/rewrite.h"

namespace heddle::ir {
namespace {

// The value of a constant whose elements are all equal, seen through broadcasts.
std::optional<double> constant(const Graph& graph, ValueId v) {
  while (graph.producer(v).op == Op::kBroadcast || graph.producer(v).op == Op::kReshape) {
    v = graph.producer(v).inputs[0];
  }
  const Tensor* value = graph.constant_of(v);
  return value == nullptr || value->size() > 1 ? std::nullopt : splat_of(*value);
}

// A comparison whose outcome rounding cannot change noticeably: with an infinity, or with zero if it selects between
// the number itself and something else, as activations do.
bool is_harmless(const Graph& graph, const Node& comparison, const std::vector<std::vector<NodeId>>& readers) {
  for (size_t i = 0; i < 2; ++i) {
    const auto bound = constant(graph, comparison.inputs[i]);
    if (!bound) continue;
    if (std::isinf(*bound)) return true;
    const ValueId compared = comparison.inputs[1 - i], result = comparison.outputs[0];
    return *bound == 0 && std::all_of(readers[result].begin(), readers[result].end(), [&](NodeId id) {
      const Node& reader = graph.node(id);
      return reader.op == Op::kSelect && (reader.inputs[1] == compared || reader.inputs[2] == compared);
    });
  }
  return false;
}

bool decides(const Graph& graph, const Node& node, const std::vector<std::vector<NodeId>>& readers) {
  switch (node.op) {
    case Op::kFloor:
    case Op::kCeil:
    case Op::kRound:
    case Op::kTrunc:
    case Op::kRem:
    case Op::kMod:
      return true;
    case Op::kCast: {
      const DType to = graph.dtype(node.outputs[0]);
      return is_int(to) || (is_float(to) && size_of(to) == 1);
    }
    default:
      return is_comparison(node.op) && !is_harmless(graph, node, readers);
  }
}

bool passes_on(Op op) {
  const OpClass kind = class_of(op);
  return is_elementwise(op) || kind == OpClass::kLayout || kind == OpClass::kIndexing;
}

// By value: true if it depends on the result of an approximate function.
std::vector<bool> approximate_values(const Graph& graph) {
  std::vector<bool> approximate(graph.value_count());
  for (const Node& node : graph.nodes()) {
    approximate[node.outputs[0]] = accuracy_of(node.op) == Accuracy::kApproximate ||
                                   (passes_on(node.op) && std::any_of(node.inputs.begin(), node.inputs.end(),
                                                                      [&](ValueId v) { return approximate[v]; }));
  }
  return approximate;
}

}  // namespace

std::vector<bool> feed_decisions(const Graph& graph) {
  std::vector<bool> feeds(graph.value_count());
  const std::vector<bool> approximate = approximate_values(graph);
  const auto readers = users(graph);
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    const Node& node = graph.nodes()[i];
    if (!decides(graph, node, readers) && !(passes_on(node.op) && feeds[node.outputs[0]])) continue;
    for (const ValueId v : node.inputs) feeds[v] = feeds[v] || (is_float(graph.dtype(v)) && !approximate[v]);
  }
  return feeds;
}

}  // namespace heddle::ir
