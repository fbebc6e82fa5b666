#pragma once

#include <cstdint>

#include "schedule/region/cuda/mapping.h"

namespace heddle::schedule {

// True for a reduction whose running results the teams of a block carry along the serial loop.
bool is_carried(const CudaMapping& mapping, const ReductionSite& site);

// The teams of a block that walk along a serial loop, each with one row, or `turns` rows, at a time.
struct SerialRows {
  int64_t team = 32, warps = 2;  // threads of a team; warps of the block
  int turns = 1;
};

// Chooses teams of a warp or less for rows of `steps` vectors of `vector` elements: as many warps as have registers for
// a row, the next ones, and the running results of its columns. If short rows leave too few bytes in flight, a thread
// loads several rows ahead. A block has `rows` rows.
SerialRows rows_of_warps(const KernelExprs& exprs, const CudaMapping& mapping, int64_t steps, int64_t vector,
                         int64_t rows);

// Chooses the block as one team, for rows without reductions along them. A thread then needs nothing of another, and
// has as few columns as possible.
SerialRows rows_of_columns(const KernelExprs& exprs, const CudaMapping& mapping, int64_t steps, int64_t vector,
                           int64_t rows);

}  // namespace heddle::schedule
