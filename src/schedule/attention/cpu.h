#pragma once

#include "schedule/attention/attention.h"
#include "tile/core/cpu_attention.h"

namespace heddle::schedule {

// Attention on a CPU: blocks of rows against blocks of keys that stay in the second-level cache.
const AttentionBackend& cpu_attention();

// The problem as the kernel sees it, blocked by a configuration.
tile::AttentionShape attention_shape(const AttentionDesc& attention, const CpuAttentionConfig& config);

}  // namespace heddle::schedule
