#pragma once

#include <functional>
#include <vector>

#include "ir/graph.h"
#include "ir/reference/array.h"

namespace heddle::ir {

struct EvalOptions {
  // If true, each result is rounded to its node's dtype, as a device would store it. Constant folding and the reference
  // steps of a plan use this. If false, all floats are float64 whatever their dtype, except that casts to float8 and
  // float4 still quantise. `verify` compares with these results. Integers always wrap to their type.
  bool round = false;
  // Called for every value that a node computes, in topological order, but not for parameters and constants. `verify`
  // uses this to compare values at group boundaries.
  std::function<void(ValueId, const Array&)> observe;
};

// Evaluates a whole graph. `inputs` are in the order of the parameters. Returns the outputs in order. Nodes that no
// output depends on are not evaluated. Values are freed after their last use. Throws kInvalidInput if the type of an
// input differs from that of its parameter, kValueOutOfRange for an index out of range, and kOutOfMemory.
std::vector<Array> evaluate(const Graph& graph, std::vector<Array> inputs, const EvalOptions& options = {});

// Evaluates one node for constant folding. The node must not be a parameter.
std::vector<Array> evaluate_node(const Graph& graph, const Node& node, std::span<const Array* const> inputs,
                                 bool round);

}  // namespace heddle::ir
