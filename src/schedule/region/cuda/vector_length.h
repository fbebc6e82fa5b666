#pragma once

#include <cstdint>
#include <vector>

#include "schedule/region/stitch.h"

namespace heddle::schedule {

// How many elements at a time the accesses of some expressions are best made along `lane`, whose first element is a
// multiple of every candidate: as many as 16 bytes hold where most of the bytes lie aligned and side by side. What lies
// in scratch, buffers from `scratch` on, may be wider.
int vector_length(const ExprPool& pool, const std::vector<GridDim>& grid, VarId lane, int64_t extent,
                  const std::vector<ExprId>& values, const std::vector<Store>& stores, uint32_t scratch = UINT32_MAX);

}  // namespace heddle::schedule
