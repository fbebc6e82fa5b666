#include "passes/fusion/context.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "ir/analysis/positions.h"
#include "ir/tile_call.h"

namespace heddle::passes {
namespace {
constexpr size_t kMostNodes = 2000;  // of a group
}

FusionContext::FusionContext(const ir::Graph& g, const FusionOptions& o)
    : graph(g),
      options(o),
      partition(g),
      users(ir::users(g)),
      of_positions(ir::of_positions(g)),
      is_output(g.value_count()),
      role(g.nodes().size()),
      chain_of(g.nodes().size()) {
  for (const ir::Graph::Port& port : graph.outputs()) is_output[port.value] = true;
  classify();
}

void FusionContext::classify() {
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    const ir::Node& node = graph.node(id);
    if (node.op == Op::kConstant || node.op == Op::kParameter) continue;
    if (node.op == Op::kLoop || node.op == Op::kIf) {
      role[id] = Role::kControl;
      continue;
    }
    if (ir::joins_in_place(node)) {
      role[id] = Role::kJoin;
      continue;
    }
    if (ir::calls_tile_program(node)) {
      role[id] = Role::kTile;
      continue;
    }
    const bool compilable = ir::is_memory_bound(node.op) || ir::is_standalone(node.op) || ir::is_anchor(node.op);
    std::string reason = fmt::format("no kernel is generated for {}", to_string(node.op));
    if (compilable && (!options.can_compile || options.can_compile(node, &reason))) {
      role[id] = ir::is_anchor(node.op) ? Role::kAnchor : Role::kMemory;
    } else {
      role[id] = Role::kReference;
      decisions.push_back({false, "compile", describe(id), std::move(reason)});
    }
  }
}

std::string FusionContext::describe(NodeId id) const {
  return ir::text_of_node(graph, graph.node(id));
}

const ir::Decision& FusionContext::decide(bool yes, std::string_view rule, NodeId what, NodeId into,
                                          std::string reason) {
  decisions.push_back({yes, std::string(rule), describe(what) + " into " + describe(into), std::move(reason)});
  return decisions.back();
}

bool FusionContext::fits(NodeId a, NodeId b) const {
  const auto nodes = [this](NodeId id) { return partition.nodes(partition.cluster_of(id)).size(); };
  return partition.same(a, b) || nodes(a) + nodes(b) <= kMostNodes;
}

bool FusionContext::are_apart(NodeId a, NodeId b) const {
  const Partition::Cluster first = partition.cluster_of(a), second = partition.cluster_of(b);
  return std::any_of(apart.begin(), apart.end(), [&](const auto& edge) {
    const Partition::Cluster from = partition.cluster_of(edge.first.first),
                             to = partition.cluster_of(edge.first.second);
    return (from == first && to == second) || (from == second && to == first);
  });
}

std::string FusionContext::too_many() {
  return fmt::format("together they have more than {} nodes", kMostNodes);
}

bool FusionContext::only_read_by(ir::ValueId value, NodeId reader) const {
  const std::vector<NodeId>& readers = users[value];
  return !is_output[value] && std::all_of(readers.begin(), readers.end(), [&](NodeId id) { return id == reader; });
}

ir::Group FusionContext::group_of(std::vector<NodeId> nodes) const {
  std::sort(nodes.begin(), nodes.end());
  ir::Group group{};
  group.nodes = std::move(nodes);
  group.anchor = group.nodes.front();
  const std::unordered_set<NodeId> inside(group.nodes.begin(), group.nodes.end());
  std::unordered_set<ir::ValueId> read;
  for (const NodeId id : group.nodes) {
    for (const ir::ValueId v : graph.node(id).inputs) {
      if (!inside.contains(graph.value(v).producer) && read.insert(v).second) group.inputs.push_back(v);
    }
    for (const ir::ValueId v : graph.node(id).outputs) {
      const auto outside = [&](NodeId user) { return !inside.contains(user); };
      if (is_output[v] || std::any_of(users[v].begin(), users[v].end(), outside)) group.outputs.push_back(v);
    }
  }
  return group;
}

size_t innermost(const Shape& shape) {
  size_t last = shape.size();
  while (last > 0 && shape[last - 1] == 1) --last;
  return last > 0 ? last - 1 : shape.size();
}

bool keeps_columns(const ir::Graph& graph, const ir::Node& node) {
  const size_t from = innermost(graph.shape(node.inputs[0])), to = innermost(graph.shape(node.outputs[0]));
  if (node.op == Op::kTranspose) {
    const ir::Ints& perm = node.attrs.ints("perm");
    return to == perm.size() || static_cast<size_t>(perm[to]) == from;
  }
  if (node.op != Op::kReverse) return true;
  const ir::Ints& dims = node.attrs.ints("dims");
  return std::all_of(dims.begin(), dims.end(), [&](int64_t d) { return static_cast<size_t>(d) < from; });
}

}  // namespace heddle::passes
