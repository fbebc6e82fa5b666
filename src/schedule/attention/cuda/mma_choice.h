#pragma once

#include <vector>

#include "schedule/attention/attention.h"

namespace heddle::schedule {

// For warps (tile/kernel/cuda/attention/sm80.h), as attention_candidates(): Q has no buffers that it walks over.
std::vector<Config> mma_attention_candidates(const AttentionDesc& attention, const CudaTarget& target, size_t most);
// Those in which warps have the same rows and different keys, for at most kAttentionFewRows rows.
std::vector<Config> few_rows_candidates(const AttentionDesc& attention, const CudaTarget& target, size_t most);

// Whether a configuration is for warps.
bool is_by_warps(const AttentionConfig& config);
// Of a block of it.
int mma_threads(const AttentionDesc& attention, const AttentionConfig& config);
int mma_shared_bytes(const AttentionDesc& attention, const AttentionConfig& config);

}  // namespace heddle::schedule
