#pragma once

#include "schedule/region/cuda/stages/drafts.h"

namespace heddle::schedule {

// The passes that turn the expressions of a kernel into its stages. The table in stages.cc gives the purpose of each
// pass.
void transpose_loads(CudaDrafts& k);
void compensate_sums(CudaDrafts& k);
void find_once(CudaDrafts& k);
void mark_barriers(CudaDrafts& k);
void mark_copies(CudaDrafts& k);

}  // namespace heddle::schedule
