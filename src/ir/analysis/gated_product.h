#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace heddle::ir {

// A gated product is two products of one value with two matrices, whose results are combined element by element, as in
// act(x G) * (x U). Both can be computed as a single product with interleaved columns: of every 2 * kGateColumns
// columns, the first kGateColumns are from G and the others from U. The kernel combines the sums of a pair of columns
// in registers and stores half as many values.
inline constexpr int64_t kGateColumns = 8;

// The elementwise nodes that combine several values. Each node depends on at least one of the values. The result of
// each node is read only by other nodes of the set, except for the last node, the meeting point. All other nodes of the
// graph depend on the values only through the meeting point.
struct Meeting {
  std::vector<NodeId> nodes;  // in topological order; the last node is the meeting point
  NodeId at() const { return nodes.back(); }
};
// Returns the nodes that combine `values`; nullopt if the values have no meeting point.
std::optional<Meeting> find_meeting(const Graph& graph, const std::vector<std::vector<NodeId>>& users,
                                    std::span<const ValueId> values);

// A candidate for a gated product in a graph. Each of the two values is either the whole result of a dot, or one half
// of the columns of a dot's result, possibly after elementwise nodes.
struct GateCandidate {
  std::array<NodeId, 2> dots{};     // the same dot twice if the values are halves of its columns
  std::array<ValueId, 2> values{};  // the values that are combined
  std::vector<NodeId> shared;       // elementwise nodes and slices between a dot and the halves, in order
  Meeting meeting;
  std::string refused;  // why the candidate cannot become one product; "" if it can

  bool is_split() const { return dots[0] == dots[1]; }
};
std::vector<GateCandidate> find_gate_candidates(const Graph& graph);

// The nodes after a dot with interleaved columns. A reshape splits the columns into [.., columns / kGateColumns, 2,
// kGateColumns]. Two slices follow, each with a reshape; the results of these reshapes are `first` and `second`.
struct GatedProduct {
  ValueId first = 0, second = 0;
  std::vector<NodeId> nodes;  // all nodes from the first reshape to the meeting point
  NodeId meet = 0;
};
// Matches a gated product after `dot`. Returns nullopt if the result of the dot is used in any other way.
std::optional<GatedProduct> match_gated_product(const Graph& graph, NodeId dot);

}  // namespace heddle::ir
