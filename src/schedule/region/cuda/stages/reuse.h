#pragma once

#include "schedule/region/cuda/stages/drafts.h"

namespace heddle::schedule {

// Steps from the expressions of a kernel to its stages; the table in stages.cc says what each is for.
void store_shared_columns(CudaDrafts& k);
void keep_between_stages(CudaDrafts& k);

}  // namespace heddle::schedule
