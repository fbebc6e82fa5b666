#include "ir/analysis/placement.h"

#include <algorithm>

#include "base/check.h"

namespace heddle::ir {

Placements find_placements(const Graph& graph) {
  Placements placed;
  for (NodeId id = static_cast<NodeId>(graph.nodes().size()); id-- > 0;) {
    const Node& node = graph.node(id);
    if (!joins_in_place(node)) continue;
    const ValueId result = node.outputs[0];
    const Shape& shape = graph.shape(result);
    const auto outer = placed.find(result);
    Placement here = outer != placed.end() ? outer->second : Placement{result, shape, Ints(shape.size(), 0)};
    const auto dim = static_cast<size_t>(node.attrs.integer("dim"));
    for (const ValueId part : node.inputs) {
      const bool is_first = placed.emplace(part, here).second;
      HEDDLE_CHECK(is_first, "value {} is to lie in two places", part);
      here.start[dim] += graph.shape(part)[dim];
    }
  }
  return placed;
}

bool is_view(const Graph& graph, const Group& group) {
  if (group.kind != GroupKind::kStitch) return false;
  return std::all_of(group.nodes.begin(), group.nodes.end(), [&](NodeId id) {
    const Node& node = graph.node(id);
    return node.op == Op::kReshape || joins_in_place(node);
  });
}

}  // namespace heddle::ir
