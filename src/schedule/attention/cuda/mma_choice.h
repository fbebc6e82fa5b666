#pragma once

#include <vector>

#include "schedule/attention/attention.h"

namespace heddle::schedule {

// As attention_candidates(), for the kernels by warps (tile/kernel/cuda/attention/sm80.h), in which Q has no ring of
// buffers.
std::vector<Config> mma_attention_candidates(const AttentionDesc& attention, const CudaTarget& target, size_t most);
// The configurations in which warps have the same rows and different keys, for at most kAttentionFewRows rows.
std::vector<Config> few_rows_candidates(const AttentionDesc& attention, const CudaTarget& target, size_t most);

// True if a configuration is for the kernels by warps.
bool is_by_warps(const CudaAttentionConfig& config);
// Threads and shared memory of a block of such a kernel.
int mma_threads(const AttentionDesc& attention, const CudaAttentionConfig& config);
int mma_shared_bytes(const AttentionDesc& attention, const CudaAttentionConfig& config);

}  // namespace heddle::schedule
