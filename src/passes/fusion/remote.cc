#include <algorithm>
#include <optional>

#include "passes/fusion/context.h"

namespace heddle::passes {

using Role = FusionContext::Role;

namespace {

constexpr int64_t kSmall = 4 << 20;   // elements beyond which a launch does not show
constexpr size_t kMostOutputs = 192;  // of one launch

// The shape of all outputs of a group of elementwise nodes; nullopt: it is another kind of group.
const Shape* elementwise_shape(const FusionContext& c, Partition::Cluster cluster, size_t& outputs) {
  const Shape* shape = nullptr;
  outputs = 0;
  for (NodeId id : c.partition.nodes(cluster)) {
    const ir::Node& node = c.graph.node(id);
    if (c.role[id] != Role::kMemory || (!ir::is_elementwise(node.op) && node.op != ir::Op::kBroadcast)) return nullptr;
    for (ValueId v : node.outputs) {
      const auto outside = [&](NodeId user) { return c.partition.cluster_of(user) != cluster; };
      if (!c.is_output[v] && std::none_of(c.users[v].begin(), c.users[v].end(), outside)) continue;
      if (shape != nullptr && *shape != c.graph.shape(v)) return nullptr;
      shape = &c.graph.shape(v);
      ++outputs;
    }
  }
  return shape;
}

}  // namespace

void fuse_remote(FusionContext& c) {
  struct Open {
    NodeId node;
    size_t outputs;
  };
  std::optional<Open> open;
  for (Partition::Cluster cluster : c.partition.order()) {
    size_t outputs = 0;
    const Shape* shape = elementwise_shape(c, cluster, outputs);
    if (shape == nullptr || element_count(*shape) > kSmall) continue;
    const NodeId node = c.partition.nodes(cluster)[0];
    if (open && open->outputs + outputs <= kMostOutputs && c.fits(open->node, node) &&
        c.partition.merge(open->node, node)) {
      open->outputs += outputs;
      c.decide(true, "remote", node, open->node, "small groups share a launch");
    } else {
      open = {node, outputs};
    }
  }
}

}  // namespace heddle::passes
