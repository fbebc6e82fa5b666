#pragma once

#include <optional>
#include <vector>

#include "schedule/expr/expr.h"

namespace heddle::schedule {

// Returns, for each expression of `order` (operands first), the position that it computes; nullopt if it computes no
// position. A position is an integer that depends only on the loop variables and that its type represents exactly. It
// may be computed by any sums and differences, and by products, quotients, remainders, minima and maxima with
// constants. Two positions are compared by their difference.
std::vector<std::optional<Index>> positions_of(ExprPool& pool, const std::vector<ExprId>& order);

}  // namespace heddle::schedule
