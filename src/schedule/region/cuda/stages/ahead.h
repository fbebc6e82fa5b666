#pragma once

#include "schedule/region/cuda/stages/drafts.h"

namespace heddle::schedule {

// Passes that turn the expressions of a kernel into stages. The table in stages.cc gives the purpose of each pass.
void load_ahead(CudaDrafts& k);
void load_next(CudaDrafts& k);
void load_before(CudaDrafts& k);

}  // namespace heddle::schedule
