#pragma once

#include <cstdint>

#include "target/cuda_launch.h"
#include "target/target.h"

namespace heddle::schedule {

// Where the sums of the parts of k lie, in elements: [part][batch][row][column], rows padded to 4 columns.
struct PartialSums {
  int64_t m, n, batch;

  int64_t row() const { return (n + 3) / 4 * 4; }
  int64_t matrix() const { return row() * m; }
  int64_t part() const { return matrix() * batch; }
};

// The kernel "gemm_reduce" (tile/kernel/cuda/gemm/splitk_reduce.h): adds `parts` (0: zeros) in order and runs the
// epilogue, whose block the caller adds. `workspace`: the operand that holds them.
CudaLaunch reduce_launch(const PartialSums& sums, int parts, const CudaTarget& target, int workspace);

}  // namespace heddle::schedule
