#pragma once

#include "schedule/region/cpu/drafts.h"

namespace heddle::schedule {

// Steps that derive a kernel's stages from its expressions. The table in stages.cc explains the purpose of each step.
void place_results(CpuDrafts& k);
void draft_reductions(CpuDrafts& k);
void draft_stores(CpuDrafts& k);

}  // namespace heddle::schedule
