#include <fmt/format.h>

#include <optional>

#include "passes/fusion/context.h"

namespace heddle::passes {
namespace {

// What the boundary between two kernels costs, and how fast memory is, in seconds and bytes a second.
struct Machine {
  double boundary, bandwidth;
};

Machine machine_of(const Target& target) {
  return {target.cpu.barrier_us * 1e-6, target.cpu.copy_gbps * 1e9 * target.cpu.threads};
}

// Seconds to move what a region reads and writes of outside values.
double seconds_of(const FusionContext& c, Partition::Cluster cluster, const Machine& machine) {
  double bytes = 0;
  const auto size = [&](ValueId v) {
    return static_cast<double>(element_count(c.graph.shape(v))) * static_cast<double>(size_of(c.graph.dtype(v)));
  };
  for (const NodeId id : c.partition.nodes(cluster)) {
    const ir::Node& node = c.graph.node(id);
    for (const ValueId v : node.inputs) {
      if (c.partition.cluster_of(c.graph.value(v).producer) != cluster) {
        bytes += std::min(size(v), size(node.outputs[0]));
      }
    }
    for (const ValueId v : node.outputs) {
      bool leaves = c.is_output[v];
      for (const NodeId user : c.users[v]) leaves = leaves || c.partition.cluster_of(user) != cluster;
      if (leaves) bytes += size(v);
    }
  }
  return bytes / machine.bandwidth;
}

}  // namespace

// Remote stitching on a CPU: regions that have nothing to do with each other become one group where a boundary is a
// good part of their time. Larger ones fill the device by themselves.
void fuse_small_regions(FusionContext& context, const Target& target) {
  constexpr double kSmall = 16;  // boundaries
  constexpr size_t kLargest = 1000;
  const Machine machine = machine_of(target);
  std::optional<NodeId> last;
  for (const Partition::Cluster cluster : context.partition.order()) {
    const auto& nodes = context.partition.nodes(cluster);
    if (nodes.empty() || context.role[nodes[0]] != FusionContext::Role::kMemory) continue;
    bool is_view = true;
    for (const NodeId id : nodes) is_view = is_view && context.graph.node(id).op == ir::Op::kReshape;
    if (is_view) continue;
    const NodeId here = nodes[0];
    const double seconds = seconds_of(context, cluster, machine);
    if (last && seconds > kSmall * machine.boundary) {
      context.decide(
          false, "remote", here, *last,
          fmt::format("it takes about {:.3g} us by itself, a boundary {:.3g}", seconds * 1e6, machine.boundary * 1e6));
    }
    if (seconds > kSmall * machine.boundary) continue;
    if (last && !context.are_apart(*last, here) &&
        nodes.size() + context.partition.nodes(context.partition.cluster_of(*last)).size() <= kLargest) {
      const bool yes = context.partition.merge(*last, here);
      context.decide(
          yes, "remote", here, *last,
          yes ? fmt::format("it takes about {:.3g} us, a boundary {:.3g}", seconds * 1e6, machine.boundary * 1e6)
              : "a path through another kernel leads from one to the other");
    }
    last = here;
  }
}

}  // namespace heddle::passes
