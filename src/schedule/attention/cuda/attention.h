#pragma once

#include "schedule/attention/attention.h"

namespace heddle::schedule {

// Returns the backend for attention on a GPU. It uses tensor cores, either by warpgroups (wgmma, TMA) or by warps
// (mma.sync, cp.async). On AMD GPUs, waves multiply with MFMA.
const AttentionBackend& cuda_attention();

}  // namespace heddle::schedule
