#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace heddle::driver {

// Whether an operation gives values of its operand as they are, in another order or type.
bool passes_values_on(ir::Op op);

// For every input; of an integer input whose values index tables (token ids into an embedding): the extent of the
// smallest table, so that random data can be made that the model accepts. 0 where nothing is known. Follows the input
// through layout changes and casts only.
std::vector<int64_t> index_bounds(const ir::Graph& graph);

}  // namespace heddle::driver
