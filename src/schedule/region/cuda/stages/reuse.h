#pragma once

#include "schedule/region/cuda/stages/drafts.h"

namespace heddle::schedule {

// Steps from the expressions of a kernel to its stages. The table in stages.cc gives the purpose of each.
void store_shared_columns(CudaDrafts& k);
void keep_between_stages(CudaDrafts& k);

}  // namespace heddle::schedule
