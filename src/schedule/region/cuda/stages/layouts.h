#pragma once

#include "schedule/region/cuda/stages/drafts.h"

namespace heddle::schedule {

// A step that turns the expressions of a kernel into stages. The table in stages.cc describes the purpose of each step.
void choose_layouts(CudaDrafts& k);

// Chooses the layout of a sweep in which `team` threads divide all elements of the draft's loops among themselves.
// Sweeps over the same loops may instead use the layout of an earlier sweep.
void layout_points(const CudaDrafts& k, CudaDraft& d, int team);
// The number of elements along `lane` that one access of a sweep loads or stores.
int vector_for(const CudaDrafts& k, const CudaDraft& d, VarId lane);

}  // namespace heddle::schedule
