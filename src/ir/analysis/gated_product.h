#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace heddle::ir {

// Two products of one value with two matrices whose results meet element by element, as in act(x G) * (x U): as one
// product whose columns come in pairs, a kernel combines both sums of a pair while they are in registers and stores
// half of them. Of every 2 * kGateColumns columns the first half is of one matrix, the second half of the other one.
inline constexpr int64_t kGateColumns = 8;

// Where values meet: nodes that compute element by element from any of them and that nothing but these nodes reads, up
// to one through which all else depends on the values.
struct Meeting {
  std::vector<NodeId> nodes;  // in order, the meeting point last
  NodeId at() const { return nodes.back(); }
};
// nullopt where they do not meet so.
std::optional<Meeting> find_meeting(const Graph& graph, const std::vector<std::vector<NodeId>>& users,
                                    std::span<const ValueId> values);

// What of a graph could be one such product. A value is all columns of a dot's result, or half of them behind nodes
// that compute element by element.
struct GateCandidate {
  std::array<NodeId, 2> dots{};     // twice the same where the values are its halves
  std::array<ValueId, 2> values{};  // what meets
  std::vector<NodeId> shared;       // between a dot and its halves, in order: elementwise nodes, and the slices
  Meeting meeting;
  std::string refused;  // why it stays as it is; empty: it need not

  bool is_split() const { return dots[0] == dots[1]; }
};
std::vector<GateCandidate> find_gate_candidates(const Graph& graph);

// A dot of such a matrix with what follows: a reshape takes the columns apart, [.., columns / kGateColumns, 2,
// kGateColumns]; two slices, a reshape behind each, are `first` and `second`.
struct GatedProduct {
  ValueId first = 0, second = 0;
  std::vector<NodeId> nodes;  // all from the reshape to the meeting point
  NodeId meet = 0;
};
// nullopt where a dot's result is not used so.
std::optional<GatedProduct> match_gated_product(const Graph& graph, NodeId dot);

}  // namespace heddle::ir
