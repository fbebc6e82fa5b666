#pragma once

#include <optional>
#include <string>

#include "ir/graph.h"

namespace heddle::ir {

// Recognises constant weights whose columns can be joined with those of other products: a matrix, or packed integers
// whose rows are the product's columns (`dequantize`). Returns a text that is equal for weights that can be joined;
// nullopt if the second operand of `dot` is neither.
std::optional<std::string> constant_weights(const Graph& graph, const Node& dot);

}  // namespace heddle::ir
