#include "frontend/onnx/fold.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "ir/reference/eval.h"

namespace heddle::onnx {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 25;  // 256 MiB as the evaluator holds it

constexpr int64_t kMaxLoopNodes = 2'000'000;  // that a constant loop may run through
constexpr int64_t kElementsOfNode = 64;       // as long as a node takes that has few

constexpr double kMaxProducts = 1 << 30;  // of one contraction: seconds of the reference evaluator

// Multiplications, or what a window looks at.
double products_of(const ir::Graph& graph, const ir::Node& node) {
  const auto elements = [&](ir::ValueId v) { return static_cast<double>(element_count(graph.shape(v))); };
  double products = elements(node.outputs[0]);
  if (node.op == ir::Op::kDot) {
    for (const int64_t d : node.attrs.ints("lhs_contract")) {
      products *= static_cast<double>(graph.shape(node.inputs[0])[static_cast<size_t>(d)]);
    }
  } else if (node.op == ir::Op::kConv) {
    products *= elements(node.inputs[1]) / static_cast<double>(std::max<int64_t>(1, graph.shape(node.inputs[1])[0]));
  } else if (node.op == ir::Op::kWindowReduce) {
    for (const int64_t n : node.attrs.ints("window")) products *= static_cast<double>(n);
  }
  return products;
}

int64_t loop_nodes_run(const ir::Graph& graph, const ir::Node& loop);

// Nodes that evaluating a graph runs through, at most kMaxLoopNodes; that many where a loop has no known bound.
int64_t nodes_run(const ir::Graph& graph) {
  int64_t total = 0;
  for (const ir::Node& node : graph.nodes()) {
    int64_t cost = 1;
    for (const ir::ValueId v : node.outputs) cost += element_count(graph.shape(v)) / kElementsOfNode;
    if (node.op == ir::Op::kIf) {
      cost += nodes_run(node.attrs.graph("then")) + nodes_run(node.attrs.graph("else"));
    } else if (node.op == ir::Op::kLoop) {
      cost += loop_nodes_run(graph, node);
    }
    total = std::min(total + cost, kMaxLoopNodes);
  }
  return total;
}

int64_t loop_nodes_run(const ir::Graph& graph, const ir::Node& loop) {
  int64_t trip = kMaxLoopNodes;
  if (const Tensor* bound = graph.constant_of(loop.inputs[0])) trip = bound->values<int64_t>()[0];
  if (loop.attrs.has("trip")) trip = std::min(trip, loop.attrs.integer("trip"));
  trip = std::clamp<int64_t>(trip, 0, kMaxLoopNodes);
  return trip == 0 ? 0 : std::min(trip * nodes_run(loop.attrs.graph("body")), kMaxLoopNodes);
}

}  // namespace

void Folder::classify() {
  const auto& nodes = graph_.nodes();
  for (auto id = static_cast<ir::NodeId>(varies_.size()); id < nodes.size(); ++id) {
    const bool endless = nodes[id].op == ir::Op::kLoop && loop_nodes_run(graph_, nodes[id]) == kMaxLoopNodes;
    bool varies = nodes[id].op == ir::Op::kParameter || endless;
    for (const ir::ValueId v : nodes[id].inputs) varies = varies || varies_[graph_.value(v).producer];
    varies_.push_back(varies);
  }
}

bool Folder::is_constant(ir::ValueId v) {
  classify();
  return !varies_[graph_.value(v).producer];
}

const ir::Array& Folder::evaluate(ir::ValueId wanted) {
  // Needed nodes, in an order that a depth-first walk finds; the graph may be deep, so no recursion.
  std::vector<ir::ValueId> stack{wanted};
  while (!stack.empty()) {
    const ir::ValueId v = stack.back();
    if (known_.contains(v)) {
      stack.pop_back();
      continue;
    }
    const ir::Node& node = graph_.producer(v);
    const size_t before = stack.size();
    for (const ir::ValueId operand : node.inputs) {
      if (!known_.contains(operand)) stack.push_back(operand);
    }
    if (stack.size() > before) continue;
    for (const ir::ValueId result : node.outputs) {
      if (element_count(graph_.shape(result)) > kMaxElements) {
        fail(ErrorCode::kOutOfMemory, fmt::format("a constant of type {}", ir::to_string(graph_.type(result))),
             "a shape depends on it, but it is too large to be computed while importing");
      }
    }
    if (const Tensor* constant = graph_.constant_of(v)) {
      known_.emplace(v, ir::to_array(*constant));
      continue;
    }
    const std::string where = fmt::format("a constant of type {}", ir::to_string(graph_.type(v)));
    budget_.check_time(where);
    if (products_of(graph_, node) > kMaxProducts) {
      fail(ErrorCode::kLimit, where, "a shape depends on it, but it takes too long to be computed while importing",
           "Compute the shape in another way");
    }
    for (const ir::ValueId result : node.outputs) {
      budget_.take_bytes(static_cast<uint64_t>(element_count(graph_.shape(result))) * sizeof(double), where);
    }
    std::vector<const ir::Array*> operands;
    for (const ir::ValueId operand : node.inputs) operands.push_back(&known_.at(operand));
    std::vector<ir::Array> results = ir::evaluate_node(graph_, node, operands, true);
    for (size_t i = 0; i < results.size(); ++i) known_.insert_or_assign(node.outputs[i], std::move(results[i]));
  }
  return known_.at(wanted);
}

Tensor Folder::fold(ir::ValueId v) {
  HEDDLE_CHECK(is_constant(v));
  if (const Tensor* constant = graph_.constant_of(v)) return *constant;
  return ir::to_tensor(evaluate(v));
}

std::vector<ir::ValueId> Folder::parameters_of(ir::ValueId v) const {
  std::vector<bool> seen(graph_.nodes().size());
  std::vector<ir::NodeId> stack{graph_.value(v).producer};
  std::vector<ir::ValueId> found;
  while (!stack.empty()) {
    const ir::NodeId id = stack.back();
    stack.pop_back();
    if (seen[id]) continue;
    seen[id] = true;
    const ir::Node& node = graph_.node(id);
    if (node.op == ir::Op::kParameter) found.push_back(node.outputs[0]);
    for (const ir::ValueId operand : node.inputs) stack.push_back(graph_.value(operand).producer);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace heddle::onnx
