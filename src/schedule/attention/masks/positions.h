#pragma once

#include <optional>
#include <vector>

#include "schedule/expr/expr.h"

namespace heddle::schedule {

// Returns the position that each expression of `order` (operands first) computes; nullopt if it does not compute a
// position. A position is an integer that depends only on the loop variables and that its type represents exactly. It
// may be computed by any sums, differences, multiples, quotients and limits. Two positions are compared by their
// difference.
std::vector<std::optional<Index>> positions_of(ExprPool& pool, const std::vector<ExprId>& order);

}  // namespace heddle::schedule
