#pragma once

#include "schedule/region/cpu/drafts.h"

namespace heddle::schedule {

// Steps from the expressions of a kernel to its stages; the table in stages.cc says what each is for.
void spread_columns(CpuDrafts& k);
void share_between_stages(CpuDrafts& k);
void stream_large_outputs(CpuDrafts& k);

}  // namespace heddle::schedule
