#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace heddle::driver {

// True if an op returns values of its operand unchanged except for their order and type.
bool passes_values_on(ir::Op op);

// For every integer input whose values index tables (such as token ids into an embedding): the extent of the smallest
// table, so that random data stays in range. 0 for other inputs and if nothing is known. Follows the input only through
// layout changes and casts.
std::vector<int64_t> index_bounds(const ir::Graph& graph);

}  // namespace heddle::driver
