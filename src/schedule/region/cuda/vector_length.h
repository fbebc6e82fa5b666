#pragma once

#include <cstdint>
#include <vector>

#include "schedule/region/stitch.h"

namespace heddle::schedule {

// Returns the best number of elements per access along the variable `lane`, for the loads in `values` and for `stores`.
// Candidates are powers of two. The value of `lane` at the first element of an access is assumed to be a multiple of
// the candidate. An access to the operand with the widest elements has at most 16 bytes; exactly 16 bytes pay off if
// most accesses are aligned and contiguous. Accesses to scratch buffers (buffer numbers >= `scratch`) may be wider.
int vector_length(const ExprPool& pool, const std::vector<GridDim>& grid, VarId lane, int64_t extent,
                  const std::vector<ExprId>& values, const std::vector<Store>& stores, uint32_t scratch = UINT32_MAX);

}  // namespace heddle::schedule
