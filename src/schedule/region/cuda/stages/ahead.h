#pragma once

#include "schedule/region/cuda/stages/drafts.h"

namespace heddle::schedule {

// Steps from the expressions of a kernel to its stages. The table in stages.cc gives the purpose of each.
void load_ahead(CudaDrafts& k);
void load_next(CudaDrafts& k);
void load_before(CudaDrafts& k);

}  // namespace heddle::schedule
