#pragma once

#include "schedule/region/cpu/drafts.h"

namespace heddle::schedule {

// Steps from the expressions of a kernel to its stages; the table in stages.cc says what each is for.
void place_results(CpuDrafts& k);
void draft_reductions(CpuDrafts& k);
void draft_stores(CpuDrafts& k);

}  // namespace heddle::schedule
