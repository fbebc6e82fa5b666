#pragma once

#include "schedule/region/cpu/drafts.h"

namespace heddle::schedule {

// Steps that turn the expressions of a kernel into stages. The table in stages.cc describes each step.
void spread_columns(CpuDrafts& k);
void share_between_stages(CpuDrafts& k);
void stream_large_outputs(CpuDrafts& k);

}  // namespace heddle::schedule
