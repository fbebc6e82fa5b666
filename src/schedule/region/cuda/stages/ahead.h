#pragma once

#include "schedule/region/cuda/stages/drafts.h"

namespace heddle::schedule {

// Steps from the expressions of a kernel to its stages; the table in stages.cc says what each is for.
void load_ahead(CudaDrafts& k);
void load_next(CudaDrafts& k);
void load_before(CudaDrafts& k);

}  // namespace heddle::schedule
