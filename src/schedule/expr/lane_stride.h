#pragma once

#include <functional>
#include <map>
#include <optional>

#include "schedule/expr/expr.h"

namespace heddle::schedule {

// Lanes along a variable, the first of which is a multiple of `aligned` (1: anywhere).
struct LanesAlong {
  VarId var;
  int64_t aligned = 1;
};

// The coefficient of the lanes' variable in an index that is affine in it, 0 where it is independent of it; nullopt: it
// is not affine. `multiples` are divisors of variables, the lanes' own among them. `varies` says whether a value that
// the index is computed from differs between lanes without depending on the variable.
std::optional<int64_t> lane_stride(const ExprPool& pool, const Index& at, const LanesAlong& lanes,
                                   const std::map<VarId, int64_t>& multiples,
                                   const std::function<bool(ExprId)>& varies = {});

}  // namespace heddle::schedule
