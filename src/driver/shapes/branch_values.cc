#include "driver/shapes/branch_values.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/dag_walk.h"
#include "driver/shapes/index_bounds.h"
#include "ir/reference/eval.h"

namespace heddle::driver {
namespace {

constexpr int64_t kMostElements = 64;  // of a value that is followed: conditions are made of little

bool compares(ir::Op op) {
  return op == ir::Op::kEq || op == ir::Op::kNe || op == ir::Op::kLt || op == ir::Op::kLe || op == ir::Op::kGt ||
         op == ir::Op::kGe;
}

// The one number that a value is, cast or reshaped; nothing where it is none or no integer.
std::optional<int64_t> number_of(const ir::Graph& graph, ir::ValueId value) {
  const Tensor* constant = graph.constant_of(value);
  while (constant == nullptr && passes_values_on(graph.producer(value).op)) {
    value = graph.producer(value).inputs[0];
    constant = graph.constant_of(value);
  }
  if (constant == nullptr || constant->size() != 1 || constant->dtype() == DType::kString) return std::nullopt;
  const ir::Array array = ir::to_array(*constant);
  if (!array.real()) return array.i()[0];
  constexpr double kMost = 1e15;
  const double number = array.f()[0];
  if (!(std::abs(number) <= kMost) || number != std::floor(number)) return std::nullopt;
  return static_cast<int64_t>(number);
}

// Constants that a value, cast or reshaped, is compared with, also in bodies of branches: in the order of the nodes.
void add_compared(const ir::Graph& graph, ir::ValueId value, std::vector<int64_t>& found) {
  const std::vector<std::vector<ir::NodeId>> users = ir::users(graph);
  std::vector<std::pair<ir::NodeId, size_t>> readers;  // with which operand
  const auto next_values = [&](ir::ValueId v, const auto& next) {
    for (const ir::NodeId id : users[v]) {
      const ir::Node& node = graph.node(id);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == v) readers.emplace_back(id, i);
      }
      if (!passes_values_on(node.op)) continue;
      for (const ir::ValueId output : node.outputs) next(output);
    }
  };
  DagWalk().run(
      value, next_values, [](ir::ValueId) { return true; }, [](ir::ValueId) {});
  std::sort(readers.begin(), readers.end());
  for (const auto& [id, operand] : readers) {
    const ir::Node& node = graph.node(id);
    if (compares(node.op)) {
      if (const auto number = number_of(graph, node.inputs[1 - operand])) found.push_back(*number);
    } else if (node.op == ir::Op::kIf && operand > 0) {
      for (const char* name : {"then", "else"}) {
        const ir::Graph& body = node.attrs.graph(name);
        add_compared(body, body.inputs()[operand - 1].value, found);
      }
    }
  }
}

// Which branches a run takes, as far as some of the inputs tell.
class Branches {
 public:
  using Known = std::unordered_map<ir::ValueId, ir::Array>;

  Branches(const ir::Graph& graph, Known known) { run(graph, std::move(known)); }

  size_t decided = 0;
  bool fails = false;  // one of them does not hold for these shapes

 private:
  void run(const ir::Graph& graph, Known known) {
    for (const ir::Node& node : graph.nodes()) {
      if (node.op == ir::Op::kCall && node.attrs.text("target") == "fail") fails = true;
      if (const Tensor* constant = node.outputs.empty() ? nullptr : graph.constant_of(node.outputs[0])) {
        if (constant->size() <= kMostElements && constant->dtype() != DType::kString) {
          known.emplace(node.outputs[0], ir::to_array(*constant));
        }
      } else if (node.op == ir::Op::kIf) {
        if (const auto condition = known.find(node.inputs[0]); condition != known.end()) {
          take(node, node.attrs.graph(condition->second.i()[0] != 0 ? "then" : "else"), known);
        }
      } else if (ir::class_of(node.op) != ir::OpClass::kControl && node.op != ir::Op::kCall) {
        evaluate(graph, node, known);
      }
    }
  }

  void take(const ir::Node& node, const ir::Graph& body, const Known& known) {
    ++decided;
    Known of_body;
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      if (const auto found = known.find(node.inputs[i]); found != known.end()) {
        of_body.emplace(body.inputs()[i - 1].value, found->second);
      }
    }
    run(body, std::move(of_body));
  }

  static void evaluate(const ir::Graph& graph, const ir::Node& node, Known& known) {
    std::vector<const ir::Array*> inputs;
    for (const ir::ValueId v : node.inputs) {
      const auto found = known.find(v);
      if (found == known.end()) return;
      inputs.push_back(&found->second);
    }
    for (const ir::ValueId v : node.outputs) {
      if (element_count(graph.shape(v)) > kMostElements) return;
    }
    if (inputs.empty()) return;
    std::vector<ir::Array> results;
    try {
      results = ir::evaluate_node(graph, node, inputs, true);
    } catch (const Error&) {
      return;  // a run would end here, too, whatever branch it took
    }
    for (size_t i = 0; i < results.size(); ++i) known.emplace(node.outputs[i], std::move(results[i]));
  }
};

ir::Array one_value(const ir::TensorType& type, int64_t value) {
  ir::Array array(type.dtype, type.shape);
  array.i()[0] = ir::wrap(type.dtype, value);
  return array;
}

// `known`: the values that earlier inputs got.
std::optional<int64_t> branch_value(const ir::Graph& graph, ir::ValueId input, const Branches::Known& known) {
  const ir::TensorType& type = graph.type(input);
  const bool flag = type.dtype == DType::kBool;
  std::vector<int64_t> candidates;
  if (flag) {
    candidates = {0, 1};
  } else {
    add_compared(graph, input, candidates);
  }
  if (candidates.empty()) return std::nullopt;
  const size_t decided_before = Branches(graph, known).decided;
  std::optional<int64_t> first, first_that_holds;
  bool fails = false;
  for (const int64_t candidate : candidates) {
    Branches::Known with = known;
    with.emplace(input, one_value(type, candidate));
    const Branches branches(graph, std::move(with));
    if (branches.decided <= decided_before) continue;
    if (!first) first = candidate;
    if (!branches.fails && !first_that_holds) first_that_holds = candidate;
    fails = fails || branches.fails;
  }
  if (flag) return fails ? first_that_holds : std::nullopt;
  return first_that_holds ? first_that_holds : first;
}

}  // namespace

std::vector<std::optional<int64_t>> branch_values(const ir::Graph& graph) {
  std::vector<std::optional<int64_t>> values;
  const bool has_branches = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                        [](const ir::Node& node) { return node.op == ir::Op::kIf; });
  Branches::Known known;
  for (const ir::Graph::Port& port : graph.inputs()) {
    std::optional<int64_t>& value = values.emplace_back();
    const ir::TensorType& type = graph.type(port.value);
    const bool is_one = (is_int(type.dtype) || type.dtype == DType::kBool) && element_count(type.shape) == 1;
    if (!has_branches || !is_one) continue;
    value = branch_value(graph, port.value, known);
    if (value) known.emplace(port.value, one_value(type, *value));
  }
  return values;
}

}  // namespace heddle::driver
