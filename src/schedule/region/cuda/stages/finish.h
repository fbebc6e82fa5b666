#pragma once

#include "schedule/region/cuda/stages/drafts.h"

namespace heddle::schedule {

// Steps from the expressions of a kernel to its stages. The table in stages.cc gives the purpose of each.
void transpose_loads(CudaDrafts& k);
void compensate_sums(CudaDrafts& k);
void find_once(CudaDrafts& k);
void mark_barriers(CudaDrafts& k);
void mark_copies(CudaDrafts& k);

}  // namespace heddle::schedule
