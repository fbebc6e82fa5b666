#pragma once

#include <string>
#include <vector>

#include "schedule/product/cuda/gemm.h"

namespace heddle::schedule {

// The configurations of tile/kernel/cuda/gemm/sm90_cluster_splitk.h (CudaGemmConfig::parts > 0) that a resolved problem
// may take, without their store and stages; for enumerate().
std::vector<CudaGemmConfig> parts_configs(const CudaGemmProblem& problem, const CudaTarget& target);

// Why one cannot run; empty: it can.
std::string reject_parts(const CudaGemmConfig& config, const CudaGemmProblem& problem, const CudaTarget& target);

double predict_parts_us(const CudaGemmProblem& problem, const CudaGemmConfig& config, const CudaTarget& target);

// Turns the launch of tile/kernel/cuda/gemm/sm90.h, whose maps are set, into that of the other kernel: grid and
// arguments.
void set_parts_launch(CudaLaunch& launch, const CudaGemmProblem& problem, const CudaGemmConfig& config, int workspace);

// Blocks, and the k-tiles of one.
struct PartsBlocks {
  int64_t blocks, each;
};
PartsBlocks parts_blocks(const CudaGemmConfig& config, const CudaGemmProblem& problem);

int parts_threads(const CudaGemmConfig& config, const CudaGemmProblem& problem);  // of a block

// Whether A's tiles (else B's; the kernel's own) are read by one or two blocks and are so many bytes that the L2 had
// better keep others.
bool streams_operand(const CudaGemmProblem& problem, const CudaGemmConfig& config, bool is_a);

}  // namespace heddle::schedule
