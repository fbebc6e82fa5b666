#pragma once

#include <functional>
#include <vector>

#include "ir/graph.h"
#include "ir/reference/array.h"

namespace heddle::ir {

struct EvalOptions {
  // true: each result is rounded to its node's dtype, as a device would store it (constant folding, reference steps of
  // a plan). false: all floats are float64 whatever their dtypes, except that casts to float8 and float4 still
  // quantise; `verify` compares with this result. Integers always wrap to their type.
  bool round = false;
  // Called for every value that a node computes (not for parameters and constants), in topological order. `verify` uses
  // it to compare the values at group boundaries.
  std::function<void(ValueId, const Array&)> observe;
};

// Evaluates a whole graph on inputs in parameter order; returns the outputs in order. Nodes that no output needs are
// not evaluated. Values are freed after their last use. Throws kInvalidInput if an input's type differs from its
// parameter's, kValueOutOfRange on a bad index, kOutOfMemory.
std::vector<Array> evaluate(const Graph& graph, std::vector<Array> inputs, const EvalOptions& options = {});

// Evaluates one node, which is not a parameter, for constant folding.
std::vector<Array> evaluate_node(const Graph& graph, const Node& node, std::span<const Array* const> inputs,
                                 bool round);

}  // namespace heddle::ir
