#include "driver/index_bounds.h"

#include <algorithm>
#include <vector>

namespace heddle::driver {
namespace {

bool passes_values_on(ir::Op op) {
  return op == ir::Op::kCast || (class_of(op) == ir::OpClass::kLayout && op != ir::Op::kPad);
}

}  // namespace

int64_t index_bound(const ir::Graph& graph, const std::string& input) {
  std::vector<bool> carries(graph.value_count(), false);
  for (const ir::Graph::Port& port : graph.inputs()) {
    if (port.name == input && is_int(graph.dtype(port.value))) carries[port.value] = true;
  }
  int64_t bound = 0;
  for (const ir::Node& node : graph.nodes()) {
    const bool indexes = node.op == ir::Op::kGather || node.op == ir::Op::kGatherElements;
    if (indexes && carries[node.inputs[1]]) {
      const int64_t extent = graph.shape(node.inputs[0])[static_cast<size_t>(node.attrs.integer("dim"))];
      bound = bound == 0 ? extent : std::min(bound, extent);
    }
    if (!passes_values_on(node.op)) continue;
    if (std::any_of(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId v) { return carries[v]; })) {
      for (const ir::ValueId value : node.outputs) carries[value] = true;
    }
  }
  return bound;
}

}  // namespace heddle::driver
