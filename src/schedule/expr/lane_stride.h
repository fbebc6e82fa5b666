#pragma once

#include <functional>
#include <map>
#include <optional>

#include "schedule/expr/expr.h"

namespace heddle::schedule {

// Lanes along a variable. The first lane's value is a multiple of `aligned` (1: any value).
struct LanesAlong {
  VarId var;
  int64_t aligned = 1;
};

// The coefficient of the lanes' variable in an index: 0 if the index does not depend on it, nullopt if it is not affine
// in it. `multiples` are divisors of variables, including the lanes' own. `varies` returns true for a value in the
// index that differs between lanes without depending on the variable.
std::optional<int64_t> lane_stride(const ExprPool& pool, const Index& at, const LanesAlong& lanes,
                                   const std::map<VarId, int64_t>& multiples,
                                   const std::function<bool(ExprId)>& varies = {});

}  // namespace heddle::schedule
