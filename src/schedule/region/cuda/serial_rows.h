#pragma once

#include <cstdint>

#include "schedule/region/cuda/mapping.h"

namespace heddle::schedule {

// True for a reduction whose running results the teams of a block carry along the serial loop.
bool is_carried(const CudaMapping& mapping, const ReductionSite& site);

// For rows of `columns` elements, returns LaneVariable::streams. Operands that do not vary with the rows, such as
// factors of the columns, may be wider; rows are still read 16 bytes at a time. If a warp's part of a row already fills
// its registers, returns 0.
uint64_t streams_of_rows(const CudaMapping& mapping, int64_t columns);

// The teams of a block that walk along a serial loop, each with one row, or `turns` rows, at a time.
struct SerialRows {
  int64_t team = 32, threads = 64;  // of a team, of the block
  int turns = 1;
  int blocks = 2;   // resident on an SM
  bool fit = true;  // the running results of a row's columns fit the registers of a team
};

// Chooses teams for rows of `steps` vectors of `vector` elements. A block has `rows` rows. A short row gets a warp or
// less, a long row the whole block. If there are no reductions along rows, threads do not exchange values, and each has
// as few columns as possible. An SM holds two blocks, or one where a row needs the registers of both.
SerialRows serial_rows(const KernelExprs& exprs, const CudaMapping& mapping, int64_t steps, int64_t vector,
                       int64_t rows);

}  // namespace heddle::schedule
