#pragma once

#include <span>
#include <string>

#include "schedule/region/cuda/stages/drafts.h"

namespace heddle::schedule {

// The steps in their order.
std::span<const StageStep<CudaDrafts>> cuda_stage_steps();

// The sweeps after a step, as readable text.
std::string describe(const CudaDrafts& k);

}  // namespace heddle::schedule
