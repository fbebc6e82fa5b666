#pragma once

#include <span>
#include <string>

#include "schedule/region/cpu/drafts.h"

namespace heddle::schedule {

// The steps in their order.
std::span<const StageStep<CpuDrafts>> cpu_stage_steps();

// The stages as they are after a step, for people.
std::string describe(const CpuDrafts& k);

}  // namespace heddle::schedule
