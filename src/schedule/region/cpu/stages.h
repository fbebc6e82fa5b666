#pragma once

#include <span>
#include <string>

#include "schedule/region/cpu/drafts.h"

namespace heddle::schedule {

// Returns the steps that plan the stages of a CPU kernel, in order.
std::span<const StageStep<CpuDrafts>> cpu_stage_steps();

// Returns the stages as readable text. Used to show the result of each step.
std::string describe(const CpuDrafts& k);

}  // namespace heddle::schedule
