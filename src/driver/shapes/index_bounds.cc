#include "driver/shapes/index_bounds.h"

#include <algorithm>
#include <vector>

#include "base/dag_walk.h"

namespace heddle::driver {
bool passes_values_on(ir::Op op) {
  return op == ir::Op::kCast || (class_of(op) == ir::OpClass::kLayout && op != ir::Op::kPad);
}

std::vector<int64_t> index_bounds(const ir::Graph& graph) {
  const std::vector<std::vector<ir::NodeId>> users = ir::users(graph);
  const auto bound_of = [&](ir::ValueId input) {
    int64_t bound = 0;
    const auto readers = [&](ir::ValueId v, const auto& next) {
      for (const ir::NodeId id : users[v]) {
        const ir::Node& node = graph.node(id);
        const bool indexes = node.op == ir::Op::kGather || node.op == ir::Op::kGatherElements;
        if (indexes && v == node.inputs[1]) {
          const int64_t extent = graph.shape(node.inputs[0])[static_cast<size_t>(node.attrs.integer("dim"))];
          bound = bound == 0 ? extent : std::min(bound, extent);
        }
        if (!passes_values_on(node.op)) continue;
        for (const ir::ValueId value : node.outputs) next(value);
      }
    };
    DagWalk().run(
        input, readers, [](ir::ValueId) { return true; }, [](ir::ValueId) {});
    return bound;
  };
  std::vector<int64_t> bounds;
  for (const ir::Graph::Port& port : graph.inputs()) {
    bounds.push_back(is_int(graph.dtype(port.value)) ? bound_of(port.value) : 0);
  }
  return bounds;
}

}  // namespace heddle::driver
