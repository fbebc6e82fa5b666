#pragma once

#include <optional>
#include <string>

#include "schedule/recurrence/recurrent.h"

namespace heddle::schedule {

// Returns the fastest mapping for `loops` recurrences like `desc`; nullopt, with the reason in `why`, if no mapping
// fits on the chip.
std::optional<RecurrentMapping> map_recurrence(const RecurrentDesc& desc, int loops, const GpuTarget& target,
                                               std::string* why);

// Packs the matrix columns of a product in the order in which the threads read them: f32[block of the cluster][step of
// k][sum][thread].
Tensor pack_shares(const RecurrentDesc& desc, const RecurrentPhase& phase, const RecurrentProduct& product);

}  // namespace heddle::schedule
