#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "passes/fusion/fusion.h"
#include "passes/fusion/partition.h"

namespace heddle::passes {

// The state that fusion rules share. A rule inspects nodes, merges them through `partition`, sets `role`, and appends
// to `decisions`.
class FusionContext {
 public:
  FusionContext(const ir::Graph& graph, const FusionOptions& options);

  // The role that the rules have assigned to a node so far.
  enum class Role : uint8_t { kFree, kMemory, kAnchor, kPrologue, kEpilogue, kControl, kTile, kReference, kJoin };

  const ir::Graph& graph;
  const FusionOptions& options;
  Partition partition;
  const std::vector<std::vector<ir::NodeId>> users;
  const std::vector<bool> of_positions;                // by value: depends on positions only (ir/analysis/positions.h)
  std::vector<bool> is_output;                         // by value: the graph returns it
  std::vector<Role> role;                              // by node; kMemory: may join a stitch group
  std::vector<std::optional<ir::GroupKind>> chain_of;  // by node: for an anchor of two contractions, its group's kind
  std::vector<ir::Decision> decisions;
  // Why a producer and its reader must be separate kernels. The key is the pair of nodes, both memory-bound.
  std::map<std::pair<ir::NodeId, ir::NodeId>, std::string> apart;

  // The op and name of a node: "add (/encoder/Add)".
  std::string describe(ir::NodeId id) const;
  const ir::Decision& decide(bool yes, std::string_view rule, ir::NodeId what, ir::NodeId into, std::string reason);
  // True if the merged group of two nodes can be scheduled in reasonable time. A chain that is too long for one group
  // becomes several groups.
  bool fits(ir::NodeId a, ir::NodeId b) const;
  static std::string too_many();
  // True if the groups of `a` and `b` contain a producer and a reader that must be separate kernels (`apart`).
  bool are_apart(ir::NodeId a, ir::NodeId b) const;
  // True if `reader` is the only node that reads a value, and the graph does not return the value.
  bool only_read_by(ir::ValueId value, ir::NodeId reader) const;
  // Creates a group of these nodes, with its inputs and outputs. The anchor is the first node; the kind is not set.
  ir::Group group_of(std::vector<ir::NodeId> nodes) const;

 private:
  void classify();
};

// The index of the innermost dimension that has more than one element; the rank if there is none.
size_t innermost(const Shape& shape);
// True if `node`, a layout change, keeps the innermost dimension innermost.
bool keeps_columns(const ir::Graph& graph, const ir::Node& node);

// Adds nodes after the anchor to its group: elementwise consumers, layout changes of the stored result and, on a GPU,
// reductions over a few adjacent elements.
void fuse_epilogue(FusionContext& context, ir::NodeId anchor, const Target& target);
// If the anchor is the second product of an attention (FusionOptions::find_attention) that a single kernel should run,
// adds all nodes between the two products to the anchor's group. Also adds the layout changes of the operands and of
// the result.
void fuse_attention(FusionContext& context, ir::NodeId anchor);
// Joins the groups of two contractions if the second contraction multiplies all results of the first one and a single
// kernel should run both (FusionOptions::can_run_back_to_back). Call this after the epilogues and prologues of both
// contractions are fused.
void fuse_back_to_back(FusionContext& context, ir::NodeId anchor);
// Adds the layout changes of a dot's operands to the dot's group if one strided view can express them.
void fuse_prologue(FusionContext& context, ir::NodeId anchor, const Target& target);
// Calls `try_edge(producer, consumer)` in topological order for every edge between two nodes that may join stitch
// groups and are not in the same cluster yet.
template <typename F>
void for_each_memory_edge(const FusionContext& c, F try_edge) {
  for (ir::NodeId id = 0; id < c.graph.nodes().size(); ++id) {
    if (c.role[id] != FusionContext::Role::kMemory) continue;
    for (ir::ValueId v : c.graph.node(id).inputs) {
      const ir::NodeId producer = c.graph.value(v).producer;
      if (c.role[producer] == FusionContext::Role::kMemory && !c.partition.same(producer, id)) try_edge(producer, id);
    }
  }
}

// Finds the layout changes before and after gathers of whole rows. Marks those that must be kernels separate from the
// gathers (FusionContext::apart).
void keep_gathered_rows_apart(FusionContext& context, const Target& target);
// Joins memory-bound nodes that are connected, and regions that read the same value.
void fuse_stitch(FusionContext& context);
// Joins small independent regions, whatever they compute. For CPUs, which run the regions in parallel.
void fuse_small_regions(FusionContext& context, const Target& target);
void fuse_basic(FusionContext& context);
// Joins small elementwise groups in each of which all results have one shape, such as an optimiser's updates of many
// tensors. For GPUs, where a launch takes as long as transferring megabytes.
void fuse_remote(FusionContext& context);

}  // namespace heddle::passes
