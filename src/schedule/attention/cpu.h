#pragma once

#include "schedule/attention/attention.h"
#include "tile/core/cpu_attention.h"

namespace heddle::schedule {

// Attention on a CPU. The kernel computes one block of rows with one block of keys at a time; the block of keys stays
// in the L2 cache.
const AttentionBackend& cpu_attention();

// The problem as the kernel sees it, with the block sizes of a configuration.
tile::AttentionShape attention_shape(const AttentionDesc& attention, const CpuAttentionConfig& config);

}  // namespace heddle::schedule
