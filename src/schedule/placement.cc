#include "schedule/placement.h"

#include <algorithm>

#include "ir/analysis/placement.h"
#include "schedule/backend.h"
#include "schedule/product/conv_problem.h"

namespace heddle::schedule {
namespace {

using ir::GroupKind;

// Images are read with pixels at equal distances, filters as they lie.
std::string read_obstacle(const ir::Graph& graph, const ir::Node& anchor, ir::ValueId value,
                          const ir::Placement& place) {
  if (anchor.op == Op::kConv && anchor.inputs[1] == value) return "it is a filter";
  if (anchor.op == Op::kDot || anchor.inputs[0] != value) return {};
  if (anchor.op == Op::kConv && is_channels_first(anchor))
    return "a convolution with channels first reads whole images";
  const size_t channels = anchor.op == Op::kConv ? place.shape.size() - 1 : window_problem(graph, anchor).last;
  const bool even = image_memory(graph.shape(value), {place.shape, &place}, channels).has_value();
  return even ? "" : "its pixels would lie at different distances there";
}

}  // namespace

std::string placement_obstacle(const ir::Graph& graph, const ir::Group& group, ir::ValueId value,
                               const ir::Placement& place, const Target& target) {
  const DType dtype = graph.dtype(value);
  if (bits_of(dtype) < 8) return "its elements are smaller than bytes";
  if (ir::is_view(graph, group)) return "a reshape of it is a view";
  const auto node = [&](ir::NodeId id) -> const ir::Node& { return graph.node(id); };
  if (group.kind == GroupKind::kStitch) {
    const bool standalone = std::any_of(group.nodes.begin(), group.nodes.end(),
                                        [&](ir::NodeId id) { return ir::is_standalone(node(id).op); });
    return standalone ? "a scatter or selection is in its kernel" : "";
  }
  if (group.kind != GroupKind::kContraction && group.kind != GroupKind::kBackToBack) {
    return fmt::format("a kernel of kind {} reads or stores whole tensors", ir::to_string(group.kind));
  }
  for (const ir::NodeId id : group.nodes) {
    if (!ir::is_anchor(node(id).op)) continue;
    if (std::string why = read_obstacle(graph, node(id), value, place); !why.empty()) return why;
  }
  return backend_of(target).placement_cost(graph, group, value, place, target);
}

}  // namespace heddle::schedule
