#include "ir/reference/eval.h"

#include <optional>

#include "base/check.h"
#include "ir/schema.h"

namespace heddle::ir {
namespace {

// Ops whose results are operand elements, or that round by themselves where they must: rounding again would cost a
// pass over the data, and would saturate what a cast to float8 deliberately did not.
bool is_rounded_already(const Node& node, DType result) {
  switch (class_of(node.op)) {
    case OpClass::kLayout:
    case OpClass::kIndexing:
    case OpClass::kControl:
      return true;
    case OpClass::kSource:
      return node.op == Op::kConstant;
    default:
      return node.op == Op::kSelect || node.op == Op::kTopK || node.op == Op::kBitcast ||
             (node.op == Op::kCast && size_of(result) == 1);
  }
}

std::string describe(const Graph& graph, const Node& node) {
  std::string text(to_string(node.op));
  for (OriginId id : node.origins) text += fmt::format(" of {} ({})", graph.origin(id).node, graph.origin(id).op_type);
  return text;
}

// The values of a graph while it is evaluated. Constants are converted at their first use, so that the weights of a
// large model are not all held as float64 at once.
class Evaluation {
 public:
  Evaluation(const Graph& graph, const EvalOptions& options)
      : graph_(graph), options_(options), values_(graph.value_count()), uses_(graph.value_count(), 0) {}

  std::vector<Array> run(std::vector<Array> inputs) {
    count_uses();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (uses_[graph_.inputs()[i].value] > 0) values_[graph_.inputs()[i].value] = std::move(inputs[i]);
    }
    for (const Node& node : graph_.nodes()) {
      if (node.op != Op::kParameter && node.op != Op::kConstant && is_used(node)) step(node);
    }
    std::vector<Array> results;
    for (const Graph::Port& port : graph_.outputs()) {
      Array& array = get(port.value);
      results.push_back(uses_[port.value] == 1 ? std::move(array) : array);
      release(port.value);
    }
    return results;
  }

 private:
  bool is_used(const Node& node) const {
    for (ValueId v : node.outputs) {
      if (uses_[v] > 0) return true;
    }
    return false;
  }

  // Counts the uses by nodes that matter; users come after producers, so one walk backwards finds them.
  void count_uses() {
    for (const Graph::Port& port : graph_.outputs()) ++uses_[port.value];
    for (size_t i = graph_.nodes().size(); i-- > 0;) {
      const Node& node = graph_.nodes()[i];
      if (!is_used(node)) continue;
      for (ValueId v : node.inputs) ++uses_[v];
    }
  }

  Array& get(ValueId v) {
    std::optional<Array>& array = values_[v];
    if (!array) {
      const Tensor* constant = graph_.constant_of(v);
      HEDDLE_CHECK(constant != nullptr, "value {} is used before it is made", v);
      array = to_array(*constant);
    }
    return *array;
  }

  void release(ValueId v) {
    if (--uses_[v] == 0) values_[v].reset();
  }

  void step(const Node& node) {
    std::vector<const Array*> operands;
    operands.reserve(node.inputs.size());
    for (ValueId v : node.inputs) get(v);
    for (ValueId v : node.inputs) operands.push_back(&*values_[v]);
    std::vector<Array> results = evaluate_node(graph_, node, operands, options_.round);
    for (ValueId v : node.inputs) release(v);
    for (size_t i = 0; i < results.size(); ++i) {
      const ValueId v = node.outputs[i];
      if (options_.observe) options_.observe(v, results[i]);
      if (uses_[v] > 0) values_[v] = std::move(results[i]);
    }
  }

  const Graph& graph_;
  const EvalOptions& options_;
  std::vector<std::optional<Array>> values_;
  std::vector<uint32_t> uses_;  // still to come; an output counts as one
};

}  // namespace

std::vector<Array> evaluate(const Graph& graph, std::vector<Array> inputs, const EvalOptions& options) {
  if (inputs.size() != graph.inputs().size()) {
    fail(ErrorCode::kInvalidInput, "reference evaluation",
         fmt::format("{} inputs given, the graph has {} parameters", inputs.size(), graph.inputs().size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Graph::Port& port = graph.inputs()[i];
    const TensorType given{inputs[i].dtype, inputs[i].shape};
    if (given == graph.type(port.value)) continue;
    fail(ErrorCode::kInvalidInput, "input " + port.name,
         fmt::format("{} given, {} expected", to_string(given), to_string(graph.type(port.value))));
  }
  return Evaluation(graph, options).run(std::move(inputs));
}

std::vector<Array> evaluate_node(const Graph& graph, const Node& node, std::span<const Array* const> inputs,
                                 bool round) {
  const OpSchema& s = schema(node.op);
  HEDDLE_CHECK(s.eval != nullptr, "{} has no reference evaluation", to_string(node.op));
  std::vector<TensorType> types;
  types.reserve(node.outputs.size());
  for (ValueId v : node.outputs) types.push_back(graph.type(v));
  std::vector<Array> results;
  try {
    results = s.eval({node.op, inputs, types, node.attrs, round});
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal || node.origins.empty()) throw;
    fail(error.code(), describe(graph, node), error.why(), error.remedy());
  }
  for (size_t i = 0; i < results.size(); ++i) {
    HEDDLE_CHECK(results[i].dtype == types[i].dtype && results[i].shape == types[i].shape, "{} made {}, not {}",
                 to_string(node.op), to_string(TensorType{results[i].dtype, results[i].shape}), to_string(types[i]));
    if (round && results[i].real() && !is_rounded_already(node, types[i].dtype)) {
      round_all(types[i].dtype, results[i].f());
    }
  }
  return results;
}

}  // namespace heddle::ir
