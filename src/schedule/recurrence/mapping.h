#pragma once

#include <optional>
#include <string>

#include "schedule/recurrence/recurrent.h"

namespace heddle::schedule {

// The mapping with the least time for `loops` such recurrences; nullopt, with the reason in `why`, if none fits on the
// chip.
std::optional<RecurrentMapping> map_recurrence(const RecurrentDesc& desc, int loops, const CudaTarget& target,
                                               std::string* why);

// The columns of a product in the layout of the threads: f32[blocks of a cluster, share of k, sums, threads].
Tensor pack_shares(const RecurrentDesc& desc, const RecurrentPhase& phase, const RecurrentProduct& product);

}  // namespace heddle::schedule
