#pragma once

#include "schedule/region/cuda/stages/drafts.h"

namespace heddle::schedule {

// Some of the steps that turn the expressions of a kernel into stages. The table in stages.cc gives the purpose of each
// step.
void place_results(CudaDrafts& k);
void draft_reductions(CudaDrafts& k);
void draft_stores(CudaDrafts& k);
void merge_moments(CudaDrafts& k);

}  // namespace heddle::schedule
