#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace heddle::ir {

// Rebuilds a graph node by node: the mechanism under every pass. For each node of `source` in order, `visit` may emit
// replacement nodes into the target and return the new values for the node's outputs, or return nullopt to have the
// node copied. Parameters keep their order; nodes that no output needs are not visited (dead code disappears).
class Rewriter {
 public:
  using Visit = std::function<std::optional<std::vector<ValueId>>(Rewriter&, const Node&)>;

  explicit Rewriter(const Graph& source) : source_(source), map_(source.value_count(), kNone) {}
  Graph run(const Visit& visit);

  const Graph& source() const { return source_; }
  Graph& target() { return target_; }
  // The target's value for a source value that was already visited.
  ValueId operator()(ValueId source_value) const;
  std::vector<ValueId> operator()(std::span<const ValueId> source_values) const;
  // Emits into the target with the origins of the node being visited.
  ValueId emit(Op op, std::vector<ValueId> target_inputs, Attrs attrs = {});
  ValueId constant(Tensor value);
  // Adds the origins of another source node (one that the current node absorbs).
  void also_from(const Node& source_node);

 private:
  static constexpr ValueId kNone = ~0u;
  std::vector<OriginId> map_origins(const Node& node);

  const Graph& source_;
  Graph target_;
  std::vector<ValueId> map_;
  std::vector<OriginId> current_origins_;
};

}  // namespace heddle::ir
