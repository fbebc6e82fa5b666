#pragma once

#include <span>
#include <string>

#include "schedule/region/cuda/stages/drafts.h"

namespace heddle::schedule {

// Returns the steps in the order in which they run.
std::span<const StageStep<CudaDrafts>> cuda_stage_steps();

// Returns the passes over the tile, as drafted after a step, as readable text.
std::string describe(const CudaDrafts& k);

}  // namespace heddle::schedule
