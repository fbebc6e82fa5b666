#pragma once

#include <string>
#include <vector>

#include "schedule/product/cuda/wgmma/wgmma.h"

namespace heddle::schedule {

// Configurations of tile/kernel/cuda/gemm/sm90_cluster_splitk.h. cluster_configs() returns those that a resolved
// problem may use. reject() returns the reason why a configuration cannot run; "" if it can. predict_us() returns the
// predicted time. shared_bytes() returns the size of the shared memory of a block.
std::vector<ClusterSplitKConfig> cluster_configs(const WgmmaProblem& problem, const GpuTarget& target);
std::string reject(const ClusterSplitKConfig& config, const WgmmaProblem& problem, const GpuTarget& target);
double predict_us(const WgmmaProblem& problem, const ClusterSplitKConfig& config, const GpuTarget& target);
int shared_bytes(const WgmmaProblem& problem, const ClusterSplitKConfig& config);

// Returns the launch of the product, without its tensor maps.
CudaLaunch cluster_launch(const WgmmaProblem& problem, const ClusterSplitKConfig& config, int workspace);

// The number of blocks, and the number of k-tiles per block.
struct ClusterBlocks {
  int64_t blocks, each;
};
ClusterBlocks cluster_blocks(const ClusterSplitKConfig& config, const WgmmaProblem& problem);

int cluster_threads(const ClusterSplitKConfig& config, const WgmmaProblem& problem);  // threads of a block

}  // namespace heddle::schedule
