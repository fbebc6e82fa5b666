#pragma once

#include "schedule/attention/attention.h"

namespace heddle::schedule {

// Attention on a GPU: on tensor cores by warpgroups.
const AttentionBackend& cuda_attention();

}  // namespace heddle::schedule
