#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace heddle::ir {

// Rebuilds a graph node by node. Every pass uses this class. For each node of `source` in order, `visit` may emit
// replacement nodes into the target and return the new values for the node's outputs. If `visit` returns nullopt, the
// node is copied. Parameters keep their order and are not visited. Nodes that no output needs are not visited either.
// Emitted nodes that remain unused are dropped at the end. A replacement must have the type of the value that it
// replaces.
class Rewriter {
 public:
  using Visit = std::function<std::optional<std::vector<ValueId>>(Rewriter&, const Node&)>;

  explicit Rewriter(const Graph& source);
  // Rebuilds the graph. May be called only once per Rewriter.
  Graph run(const Visit& visit);

  const Graph& source() const { return source_; }
  Graph& target() { return target_; }
  // The target value of a source value whose node was already visited.
  ValueId operator()(ValueId source_value) const;
  std::vector<ValueId> operator()(std::span<const ValueId> source_values) const;
  // Emits a node into the target, with the origins of the source node that is being visited.
  ValueId emit(Op op, std::vector<ValueId> target_inputs, Attrs attrs = {});
  ValueId constant(Tensor value);
  // Copies a source node into the target, with its own origins and those of the node that is being visited.
  std::vector<ValueId> copy(const Node& node);
  // Adds the origins of a source node that the current node absorbs.
  void also_from(const Node& source_node);
  const std::vector<OriginId>& origins() const { return current_origins_; }

 private:
  static constexpr ValueId kNone = ~0u;

  const Graph& source_;
  Graph target_;
  std::vector<ValueId> map_;
  std::vector<OriginId> current_origins_;
};

// For every node, true if an output of the graph needs it. True for all parameters, since a graph keeps them.
std::vector<bool> live_nodes(const Graph& graph);
// A copy of the graph without the nodes that no output needs.
Graph drop_dead(const Graph& graph);

}  // namespace heddle::ir
