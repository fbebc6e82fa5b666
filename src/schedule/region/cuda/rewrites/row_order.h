#pragma once

#include "schedule/region/cut.h"

namespace heddle::schedule {

// Moves transposes that only reorder rows past elementwise operations and reductions, so that all of these compute in
// one order. Operands in another order are read through the inverse transpose, and results are stored through the
// transpose; both change only the address of a row. A kernel with results in both orders would otherwise read and
// compute every row twice, once in each order.
void unify_row_order(LocalGraph& local);

// Returns how the rows of `x` must be moved to lie in the order in which a kernel computes those of `rows`. Both have
// equally many rows of the last dimension. Empty if they are in the same order, or if they share no value.
std::vector<RowMove> moves_to_order(const ir::Graph& graph, ir::ValueId x, ir::ValueId rows);

}  // namespace heddle::schedule
