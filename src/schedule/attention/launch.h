#pragma once

#include "schedule/attention/attention.h"
#include "target/cuda_launch.h"

namespace heddle::schedule {

// How the kernel is launched, without its symbol and the arguments of its functors.
CudaLaunch plan_launch(const AttentionDesc& attention, const AttentionConfig& config, const CudaTarget& target);

}  // namespace heddle::schedule
