#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace heddle::ir {

// Two products of one value with two matrices whose results are combined element by element, as in act(x G) * (x U).
// They can be one product whose columns come in pairs: its kernel combines both sums of a pair in registers and stores
// half as many values. Of every 2 * kGateColumns columns, the first half is from one matrix and the second half from
// the other.
inline constexpr int64_t kGateColumns = 8;

// The place where values are combined: elementwise nodes that depend on any of the values and are read only by each
// other, up to the meeting point. Everything else depends on the values only through that last node.
struct Meeting {
  std::vector<NodeId> nodes;  // in order, the meeting point last
  NodeId at() const { return nodes.back(); }
};
// nullopt if there is no such place.
std::optional<Meeting> find_meeting(const Graph& graph, const std::vector<std::vector<NodeId>>& users,
                                    std::span<const ValueId> values);

// A part of a graph that could be one such product. Each value is either all columns of a dot's result, or half of them
// after elementwise nodes.
struct GateCandidate {
  std::array<NodeId, 2> dots{};     // the same dot twice if the values are its halves
  std::array<ValueId, 2> values{};  // the values that are combined
  std::vector<NodeId> shared;       // between a dot and its halves, in order: elementwise nodes, and the slices
  Meeting meeting;
  std::string refused;  // why it is not made one product; "" if nothing prevents it

  bool is_split() const { return dots[0] == dots[1]; }
};
std::vector<GateCandidate> find_gate_candidates(const Graph& graph);

// A dot with such a matrix and the nodes after it: a reshape splits the columns into [.., columns / kGateColumns, 2,
// kGateColumns]. Then come two slices, each followed by a reshape; their results are `first` and `second`.
struct GatedProduct {
  ValueId first = 0, second = 0;
  std::vector<NodeId> nodes;  // all from the reshape to the meeting point
  NodeId meet = 0;
};
// nullopt if the result of the dot is used otherwise.
std::optional<GatedProduct> match_gated_product(const Graph& graph, NodeId dot);

}  // namespace heddle::ir
