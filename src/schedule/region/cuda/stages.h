#pragma once

#include <span>
#include <string>
#include <string_view>

#include "schedule/region/cuda/drafts.h"

namespace heddle::schedule {

// A step from the expressions of a kernel to its sweeps.
struct CudaStageStep {
  std::string_view name, what;
  void (*run)(CudaDrafts& k);
};

// The steps in their order.
std::span<const CudaStageStep> cuda_stage_steps();

// The sweeps as they are after a step, for people.
std::string describe(const CudaDrafts& k);

}  // namespace heddle::schedule
