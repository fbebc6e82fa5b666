#pragma once

#include "schedule/region/cuda/stages/drafts.h"

namespace heddle::schedule {

// Two of the passes that turn the expressions of a kernel into stages. The table in stages.cc gives the purpose of each
// pass.
void store_shared_columns(CudaDrafts& k);
void keep_between_stages(CudaDrafts& k);

}  // namespace heddle::schedule
