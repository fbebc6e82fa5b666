#include "ir/analysis/positions.h"

#include <algorithm>

#include "ir/reference/scalar.h"

namespace heddle::ir {

bool is_cheap(Op op) {
  const bool divides = op == Op::kDiv || op == Op::kRem || op == Op::kMod;
  return is_elementwise(op) && (divides || !is_costly(op));
}

std::vector<bool> of_positions(const Graph& graph) {
  constexpr int64_t kMostSearched = 1 << 16;  // elements of a constant
  std::vector<bool> result(graph.value_count(), false);
  for (const Node& node : graph.nodes()) {
    bool known = node.op == Op::kIota;
    if (node.op == Op::kConstant) {
      const Tensor& value = node.attrs.tensor("value");
      known = value.size() >= 1 && value.size() <= kMostSearched && is_splat(value);
    } else if (is_cheap(node.op) || class_of(node.op) == OpClass::kLayout) {
      known = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return result[v]; });
    }
    for (const ValueId v : node.outputs) result[v] = known;
  }
  return result;
}

}  // namespace heddle::ir
