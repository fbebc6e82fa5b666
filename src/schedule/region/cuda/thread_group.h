#pragma once

#include <cstdint>

#include "target/target.h"

namespace heddle::schedule {

// Vectors that a thread keeps of a row.
inline constexpr int64_t kStepsOfThread = 8;

// Threads for an iteration that is a row of `steps` vectors, each `access` bytes in memory. `again`: it is gone over
// more than once, to reduce it again or to store it.
int64_t team_for_row(const CudaTarget& target, int64_t steps, int64_t iterations, int64_t access, bool again);

// Bytes that neighbouring threads should read side by side.
inline constexpr int64_t kColumnSegment = 128;

// How many neighbouring columns a block takes, of `columns` that lie in memory as elements of `element` bytes; `bytes`
// that the kernel moves.
int64_t columns_of_block(int64_t columns, int vector, int64_t element, double bytes);

// GB/s that a block reads which walks down columns in vectors of `access` bytes.
double column_gbps(const CudaTarget& target, int64_t access);

}  // namespace heddle::schedule
