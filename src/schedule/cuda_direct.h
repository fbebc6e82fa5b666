#pragma once

#include <string>
#include <vector>

#include "schedule/cuda_tile.h"

namespace heddle::schedule {

// The configurations of tile/kernel/cuda/gemm_direct.h (Engine::kDirect) for a problem; none where it is none for it:
// operands in lines along k at multiples of 16 bytes, 2 MiB in all. For enumerate().
std::vector<CudaTileConfig> direct_configs(const CudaTileProblem& problem, const CudaTarget& target);

// Why one cannot run; empty: it can.
std::string reject_direct(const CudaTileConfig& config, const CudaTileProblem& problem, const CudaTarget& target);

double predict_direct_us(const CudaTileProblem& problem, const CudaTileConfig& config, const CudaTarget& target);

// Shared memory of a block: the sums of all warps but the first of each tile.
int direct_shared_bytes(const CudaTileConfig& config);

// The launch, without operands.
CudaLaunch direct_launch(const CudaTileProblem& problem, const CudaTileConfig& config);

// Blocks of 16 rows and 8 columns that a warp has.
int direct_blocks_m(const CudaTileConfig& config);
int direct_blocks_n(const CudaTileConfig& config);
// Whether no warp has less of k than another.
bool direct_whole(const CudaTileProblem& problem, const CudaTileConfig& config);

}  // namespace heddle::schedule
