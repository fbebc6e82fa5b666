#pragma once

#include "schedule/attention/attention.h"

namespace heddle::schedule {

// Attention on a GPU: on tensor cores, by warpgroups (wgmma, TMA) or by warps (mma.sync, cp.async).
const AttentionBackend& cuda_attention();

}  // namespace heddle::schedule
