#pragma once

#include <cstdint>

#include "target/target.h"

namespace heddle::schedule {

// The largest number of vectors of a row that one thread should hold.
inline constexpr int64_t kStepsOfThread = 8;

// The number of threads per iteration, for iterations that process a row of `steps` vectors of `access` bytes each.
// `again`: the row is traversed more than once, to reduce it again or to store it.
int64_t team_for_row(const GpuTarget& target, int64_t steps, int64_t iterations, int64_t access, bool again);

// The number of contiguous bytes that neighbouring threads should read together.
inline constexpr int64_t kColumnSegment = 128;

// The number of neighbouring columns per block. There are `columns` columns, and an element has `element` bytes.
// `bytes` is the memory traffic of the kernel.
int64_t columns_of_block(int64_t columns, int vector, int64_t element, double bytes);

// The read bandwidth in GB/s of blocks that read columns from top to bottom in vectors of `access` bytes.
double column_gbps(const GpuTarget& target, int64_t access);

}  // namespace heddle::schedule
