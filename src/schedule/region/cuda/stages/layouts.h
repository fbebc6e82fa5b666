#pragma once

#include "schedule/region/cuda/stages/drafts.h"

namespace heddle::schedule {

// Steps from the expressions of a kernel to its stages; the table in stages.cc says what each is for.
void choose_layouts(CudaDrafts& k);

// Of a sweep of its own over all points, by `team` threads.
void layout_points(const CudaDrafts& k, CudaDraft& d, int team);
// How many elements an access of a sweep takes along `lane`.
int vector_for(const CudaDrafts& k, const CudaDraft& d, VarId lane);

}  // namespace heddle::schedule
