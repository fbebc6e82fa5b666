#pragma once

#include <cstdint>
#include <vector>

#include "schedule/region/stitch.h"

namespace heddle::schedule {

// The best number of elements per access along `lane` for these expressions. The lane's first element is a multiple of
// every candidate. The result is the number that fits 16 bytes if most of the bytes are aligned and contiguous.
// Accesses to scratch, buffers from `scratch` on, may be wider.
int vector_length(const ExprPool& pool, const std::vector<GridDim>& grid, VarId lane, int64_t extent,
                  const std::vector<ExprId>& values, const std::vector<Store>& stores, uint32_t scratch = UINT32_MAX);

}  // namespace heddle::schedule
