#pragma once

#include <vector>

#include "schedule/attention/attention.h"

namespace heddle::schedule {

// For warpgroups: every tile that registers and shared memory hold, the least predicted time first; at most `most` of
// them. Empty where none do.
std::vector<Config> attention_candidates(const AttentionDesc& attention, const CudaTarget& target, size_t most);

}  // namespace heddle::schedule
