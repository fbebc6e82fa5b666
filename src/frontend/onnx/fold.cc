#include "frontend/onnx/fold.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "ir/eval.h"

namespace heddle::onnx {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 27;  // 1 GiB as the evaluator holds it

}  // namespace

void Folder::classify() {
  const auto& nodes = graph_.nodes();
  for (auto id = static_cast<ir::NodeId>(varies_.size()); id < nodes.size(); ++id) {
    bool varies = nodes[id].op == ir::Op::kParameter;
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
