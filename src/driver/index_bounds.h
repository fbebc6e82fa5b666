#pragma once

#include <string>

#include "ir/graph.h"

namespace heddle::driver {

// For an integer input whose values index tables (token ids into an embedding): the extent of the smallest table, so
// that random data can be made that the model accepts. 0 where nothing is known. Follows the input through layout
// changes and casts only.
int64_t index_bound(const ir::Graph& graph, const std::string& input);

}  // namespace heddle::driver
