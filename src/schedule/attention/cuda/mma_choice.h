#pragma once

#include <vector>

#include "schedule/attention/attention.h"

namespace heddle::schedule {

// Like attention_candidates(), but for the kernels that multiply with mma.sync or MFMA, warp by warp
// (tile/kernel/cuda/attention/warps.h). In these kernels, Q has no ring of buffers.
std::vector<Config> mma_attention_candidates(const AttentionDesc& attention, const GpuTarget& target, size_t most);
// The configurations in which the warps of a block share the same rows and process different keys. Only for products
// with at most kAttentionFewRows rows.
std::vector<Config> few_rows_candidates(const AttentionDesc& attention, const GpuTarget& target, size_t most);

// True if a configuration is for one of these kernels.
bool is_by_warps(const CudaAttentionConfig& config);
// For a block of one of these kernels: the number of threads, and the size of the shared memory in bytes.
int mma_threads(const AttentionDesc& attention, const CudaAttentionConfig& config);
int mma_shared_bytes(const AttentionDesc& attention, const CudaAttentionConfig& config);

}  // namespace heddle::schedule
