#pragma once

#include <optional>
#include <string>

#include "ir/graph.h"

namespace heddle::ir {

// Constant weights of a product whose columns may be put beside those of other products: a matrix, or packed integers
// whose rows are columns of the product (`dequantize`). Returns a text that is equal for weights that can be put
// together; nullopt if the second operand of `dot` is neither.
std::optional<std::string> constant_weights(const Graph& graph, const Node& dot);

}  // namespace heddle::ir
