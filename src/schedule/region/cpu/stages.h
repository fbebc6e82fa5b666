#pragma once

#include <span>
#include <string>

#include "schedule/region/cpu/drafts.h"

namespace heddle::schedule {

// The steps in their order.
std::span<const StageStep<CpuDrafts>> cpu_stage_steps();

// The stages after a step, as readable text.
std::string describe(const CpuDrafts& k);

}  // namespace heddle::schedule
