#pragma once

#include <optional>
#include <vector>

#include "schedule/expr/expr.h"

namespace heddle::schedule {

// For each of `order` (operands first) the position that it is, by expression; nullopt where it is none. A position is
// an integer that the loop variables alone decide and that its type holds exactly, by whatever sums, differences,
// multiples, quotients and limits it was made: two of them are compared by their difference.
std::vector<std::optional<Index>> positions_of(ExprPool& pool, const std::vector<ExprId>& order);

}  // namespace heddle::schedule
