#pragma once

#include <cstdint>

#include "target/cuda_launch.h"
#include "target/target.h"
#include "tile/core/cuda_gemm.h"

namespace heddle::schedule {

// The maximum size in bytes of a workspace for partial sums or copies of operands.
inline constexpr int64_t kMostWorkspace = int64_t{64} << 20;

// The measured fraction of a GPU's block slots that clusters can use at the same time, by the number of blocks per
// cluster. A GPU's SMs form groups, and a cluster must fit into one group, so some SMs stay idle.
inline constexpr double kClusterShare[] = {1, 1, 1, 0.9, 0.94, 0.89, 0.89, 0.8, 0.91};

// The layout of the partial sums of split-K: [part of k][batch][row][column], with each row padded to a multiple of 4
// columns. The strides are in elements.
struct PartialSums {
  int64_t m, n, batch;

  int64_t row() const { return (n + 3) / 4 * 4; }
  int64_t matrix() const { return row() * m; }
  int64_t part() const { return matrix() * batch; }
};

// Returns the launch of "gemm_reduce" (tile/kernel/cuda/gemm/splitk_reduce.h). This kernel adds `parts` partial sums in
// order (if `parts` is 0, the sum is zero) and runs the epilogue. `workspace` is the number of the operand with the
// partial sums. The caller adds the arguments of the epilogue.
CudaLaunch reduce_launch(const PartialSums& sums, int parts, const GpuTarget& target, int workspace);

// Returns the arguments of a cluster split-K kernel with an m x n result. The `steps` steps of k are divided into
// `splits` parts, one for each cluster; the `cluster_k` blocks of a cluster divide its part among themselves.
tile::ClusterSplitKArgs cluster_splitk_args(const PartialSums& sums, int64_t m, int64_t n, int64_t steps,
                                            int64_t cluster_k, int splits);

}  // namespace heddle::schedule
