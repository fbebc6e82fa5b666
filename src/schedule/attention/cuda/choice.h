#pragma once

#include <vector>

#include "schedule/attention/attention.h"

namespace heddle::schedule {

// Returns at most `most` configurations of the warpgroup kernels, in ascending order of their predicted times. Their
// tiles fit into registers and shared memory. The result may be empty.
std::vector<Config> attention_candidates(const AttentionDesc& attention, const GpuTarget& target, size_t most);

}  // namespace heddle::schedule
