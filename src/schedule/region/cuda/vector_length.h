#pragma once

#include <cstdint>
#include <vector>

#include "schedule/region/stitch.h"

namespace heddle::schedule {

// Returns the best number of elements per access along `lane` for these expressions. The index of each lane's first
// element is assumed to be a multiple of every candidate. Candidates are powers of two. Accesses to the widest operand
// have at most 16 bytes, and exactly 16 bytes pay off if most accesses are aligned and contiguous. Accesses to scratch
// buffers (numbers >= `scratch`) may be wider.
int vector_length(const ExprPool& pool, const std::vector<GridDim>& grid, VarId lane, int64_t extent,
                  const std::vector<ExprId>& values, const std::vector<Store>& stores, uint32_t scratch = UINT32_MAX);

}  // namespace heddle::schedule
