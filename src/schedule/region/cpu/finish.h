#pragma once

#include "schedule/region/cpu/drafts.h"

namespace heddle::schedule {

// Two of the steps that turn the expressions of a kernel into stages. The table in stages.cc gives the purpose of each
// step.
void lay_out_loops(CpuDrafts& k);
void prefetch_next(CpuDrafts& k);

}  // namespace heddle::schedule
