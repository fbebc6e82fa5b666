#include "passes/quantized/constant_values.h"

#include <algorithm>

#include "ir/group.h"
#include "ir/reference/eval.h"
#include "passes/simplify/constant_kernels.h"

namespace heddle::passes {

ConstantValues::ConstantValues(const ir::Graph& graph) : graph_(graph) {
  for (const Node& node : graph.nodes()) {
    const bool computed =
        ir::is_elementwise(node.op) || ir::class_of(node.op) == OpClass::kLayout || node.op == Op::kGather;
    const auto is_known = [&](ValueId v) { return constant_[graph.value(v).producer]; };
    constant_.push_back(node.op == Op::kConstant ||
                        (computed && std::all_of(node.inputs.begin(), node.inputs.end(), is_known)));
  }
}

std::optional<Tensor> ConstantValues::value_of(ValueId v) const {
  if (!constant_[graph_.value(v).producer]) return std::nullopt;
  std::map<ValueId, Tensor> values;
  for (std::vector<ValueId> open{v}; !open.empty();) {
    const ValueId at = open.back();
    const size_t before = open.size();
    if (!values.contains(at)) {
      for (const ValueId input : graph_.producer(at).inputs) {
        if (!values.contains(input)) open.push_back(input);
      }
      if (open.size() > before) continue;
      std::optional<Tensor> made = evaluated(at, values);
      if (!made) return std::nullopt;
      values.emplace(at, std::move(*made));
    }
    open.pop_back();
  }
  return std::move(values.at(v));
}

std::optional<Tensor> ConstantValues::evaluated(ValueId v, const std::map<ValueId, Tensor>& values) const {
  constexpr int64_t kMostSlowElements = 1 << 20;
  if (const Tensor* constant = graph_.constant_of(v)) return *constant;
  const Node& node = graph_.producer(v);
  std::vector<Tensor> operands;
  for (const ValueId input : node.inputs) operands.push_back(values.at(input));
  if (std::optional<Tensor> fast = evaluate_dense(node, operands)) return fast;
  if (element_count(graph_.shape(v)) > kMostSlowElements) return std::nullopt;
  std::vector<ir::Array> arrays;
  for (const Tensor& operand : operands) arrays.push_back(ir::to_array(operand));
  std::vector<const ir::Array*> pointers;
  for (const ir::Array& array : arrays) pointers.push_back(&array);
  return ir::to_tensor(ir::evaluate_node(graph_, node, pointers, true)[0]);
}

}  // namespace heddle::passes
