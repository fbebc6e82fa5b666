#pragma once

#include <span>
#include <string>

#include "schedule/region/cuda/stages/drafts.h"

namespace heddle::schedule {

// Returns the steps in the order in which they run.
std::span<const StageStep<CudaDrafts>> cuda_stage_steps();

// Returns readable text that lists the drafts: the sweeps over the tile, as planned so far.
std::string describe(const CudaDrafts& k);

}  // namespace heddle::schedule
