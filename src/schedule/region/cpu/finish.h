#pragma once

#include "schedule/region/cpu/drafts.h"

namespace heddle::schedule {

// Steps from the expressions of a kernel to its stages; the table in stages.cc says what each is for.
void lay_out_loops(CpuDrafts& k);
void prefetch_next(CpuDrafts& k);

}  // namespace heddle::schedule
