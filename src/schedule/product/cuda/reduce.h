#pragma once

#include <cstdint>

#include "target/cuda_launch.h"
#include "target/target.h"
#include "tile/core/cuda_gemm.h"

namespace heddle::schedule {

// The most bytes of a workspace: partial sums, or copies of operands.
inline constexpr int64_t kMostWorkspace = int64_t{64} << 20;

// By the number of blocks of a cluster: the share of a GPU's blocks that run at once, as measured. Clusters leave SMs
// of some groups idle.
inline constexpr double kClusterShare[] = {1, 1, 1, 0.9, 0.94, 0.89, 0.89, 0.8, 0.91};

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

// The arguments of a kernel for an m x n result whose clusters of `cluster_k` blocks divide `steps` of k, in `splits`
// parts of their own.
tile::ClusterSplitKArgs cluster_splitk_args(const PartialSums& sums, int64_t m, int64_t n, int64_t steps,
                                            int64_t cluster_k, int splits);

}  // namespace heddle::schedule
