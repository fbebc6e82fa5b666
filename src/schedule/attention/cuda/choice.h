#pragma once

#include <vector>

#include "schedule/attention/attention.h"

namespace heddle::schedule {

// Configurations of the warpgroup kernels: every tile size that fits into registers and shared memory, lowest predicted
// time first, at most `most`. May be empty.
std::vector<Config> attention_candidates(const AttentionDesc& attention, const CudaTarget& target, size_t most);

}  // namespace heddle::schedule
