#pragma once

#include "schedule/region/cuda/stages/drafts.h"

namespace heddle::schedule {

// Steps from the expressions of a kernel to its stages. The table in stages.cc gives the purpose of each.
void choose_layouts(CudaDrafts& k);

// Chooses the layout of a separate sweep over all points by `team` threads.
void layout_points(const CudaDrafts& k, CudaDraft& d, int team);
// The number of elements that an access of a sweep takes along `lane`.
int vector_for(const CudaDrafts& k, const CudaDraft& d, VarId lane);

}  // namespace heddle::schedule
