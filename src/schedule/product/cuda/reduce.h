#pragma once

#include <cstdint>

#include "target/cuda_launch.h"
#include "target/target.h"

namespace heddle::schedule {

// Layout of the sums of the parts of k, in elements: [part][batch][row][column], rows padded to 4 columns.
struct PartialSums {
  int64_t m, n, batch;

  int64_t row() const { return (n + 3) / 4 * 4; }
  int64_t matrix() const { return row() * m; }
  int64_t part() const { return matrix() * batch; }
};

// The launch of "gemm_reduce" (tile/kernel/cuda/gemm/splitk_reduce.h), which adds `parts` partial sums in order (0: the
// sums are zero) and runs the epilogue. The caller adds the epilogue's arguments. `workspace`: the operand with the
// partial sums.
CudaLaunch reduce_launch(const PartialSums& sums, int parts, const CudaTarget& target, int workspace);

}  // namespace heddle::schedule
