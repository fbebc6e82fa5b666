#pragma once

#include <cstdint>

#include "schedule/region/cuda/mapping.h"

namespace heddle::schedule {

// True for a reduction whose running results the teams of a block carry along the serial loop.
bool is_carried(const CudaMapping& mapping, const ReductionSite& site);

// The variables that an operand of rows of `columns` elements must vary with to limit the bytes of an access (LaneVariable). Narrow rows are read in whole 16 bytes, though factors of the columns are wider, unless a warp's part of
// a row already fills its registers.
uint64_t streams_of_rows(const CudaMapping& mapping, int64_t columns);

// The teams of a block that walk along a serial loop, each with one row, or `turns` rows, at a time.
struct SerialRows {
  int64_t team = 32, threads = 64;  // of a team, of the block
  int turns = 1;
  bool fit = true;  // the running results of a row's columns fit the registers of a team
};

// Chooses teams for rows of `steps` vectors of `vector` elements, so that a SM holds `mapping.min_blocks_per_sm` blocks.
// A block has `rows` rows. A short row gets a warp or less. A long one gets the block. If a row has no reductions along
// it, a thread needs nothing of another and has as few columns as possible.
SerialRows serial_rows(const KernelExprs& exprs, const CudaMapping& mapping, int64_t steps, int64_t vector,
                       int64_t rows);

}  // namespace heddle::schedule
