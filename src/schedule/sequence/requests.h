#pragma once

#include <cstdint>
#include <vector>

#include "schedule/sequence/sequence.h"
#include "target/cuda_launch.h"

namespace heddle::schedule {

// Finds products that request the weights of the next product. `in_sequence` tells which kernels are phases of
// sequences, which request weights themselves.
std::vector<WeightRequest> plan_requests(const std::vector<PlannedKernel>& kernels,
                                         const std::vector<bool>& in_sequence, const GpuTarget& target);

// Lets the launch of a product request the first `bytes` bytes of an operand.
void add_request(CudaLaunch& launch, int operand, int64_t bytes);

}  // namespace heddle::schedule
