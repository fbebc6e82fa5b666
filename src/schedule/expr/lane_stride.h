#pragma once

#include <functional>
#include <map>
#include <optional>

#include "schedule/expr/expr.h"

namespace heddle::schedule {

// The lanes of a vector along the variable `var`. The variable's value in lane 0 is a multiple of `aligned` (1: any
// value).
struct LanesAlong {
  VarId var;
  int64_t aligned = 1;
};

// Returns the coefficient of lanes.var in an index: 0 if the index does not depend on the variable, nullopt if the
// index is not affine in the variable. `multiples` gives divisors of variables, including lanes.var. `varies` returns
// true for a value in the index that differs between lanes although it does not depend on lanes.var.
std::optional<int64_t> lane_stride(const ExprPool& pool, const Index& at, const LanesAlong& lanes,
                                   const std::map<VarId, int64_t>& multiples,
                                   const std::function<bool(ExprId)>& varies = {});

}  // namespace heddle::schedule
