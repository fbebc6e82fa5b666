#pragma once

#include <cstdint>

#include "target/target.h"

namespace heddle::schedule {

// The most vectors of a row that a thread should keep.
inline constexpr int64_t kStepsOfThread = 8;

// Threads per iteration, if an iteration is a row of `steps` vectors of `access` bytes in memory each. `again`: the row
// is traversed more than once, to reduce it again or to store it.
int64_t team_for_row(const CudaTarget& target, int64_t steps, int64_t iterations, int64_t access, bool again);

// Contiguous bytes that neighbouring threads should read together.
inline constexpr int64_t kColumnSegment = 128;

// Neighbouring columns per block, out of `columns` columns of elements of `element` bytes in memory. `bytes`: the
// memory traffic of the kernel.
int64_t columns_of_block(int64_t columns, int vector, int64_t element, double bytes);

// Read bandwidth in GB/s of a block that walks down columns in vectors of `access` bytes.
double column_gbps(const CudaTarget& target, int64_t access);

}  // namespace heddle::schedule
