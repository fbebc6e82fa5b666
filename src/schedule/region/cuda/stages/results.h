#pragma once

#include "schedule/region/cuda/stages/drafts.h"

namespace heddle::schedule {

// Steps from the expressions of a kernel to its stages. The table in stages.cc gives the purpose of each.
void place_results(CudaDrafts& k);
void draft_reductions(CudaDrafts& k);
void draft_stores(CudaDrafts& k);
void merge_moments(CudaDrafts& k);

}  // namespace heddle::schedule
