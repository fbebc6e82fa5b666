#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace heddle::driver {

// True if an op returns the values of its operand, changed only in order and type.
bool passes_values_on(ir::Op op);

// Returns an upper bound for the values of each integer input that is used as an index into tables (such as token ids
// for an embedding), so that random data stays in range: the extent of the smallest of these tables. Returns 0 for
// inputs of other kinds and for unknown bounds. Follows an input only through layout changes and casts.
std::vector<int64_t> index_bounds(const ir::Graph& graph);

}  // namespace heddle::driver
