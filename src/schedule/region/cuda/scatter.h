#pragma once

#include "schedule/kernel_plan.h"
#include "schedule/region/standalone.h"
#include "tile/core/cuda_standalone.h"

namespace heddle::schedule {

// A scatter has one of three forms on a GPU. Owners: each thread or warp owns elements of the result and looks at all
// updates of their column. Atomic: threads share the updates and add them in any order. Sorted: updates are sorted by
// row, then shared like that; sums are the same in every run.
//
// Sets the choice of the form with the least predicted time, its predicted time and its number of blocks. Returns the
// threads of a block.
int64_t map_scatter_to_cuda(Config& config, const StandaloneDesc& desc, const GpuTarget& cuda);

// What the result of a scatter holds before the updates.
tile::ScatterFrom starts_from(const StandaloneDesc& desc);

// The launches refer to their functions as "scatter" with a suffix: "_begin", "_sort", "_merge" or "_rows" for those
// beside the one that applies the updates.
KernelLaunches plan_scatter(const StandaloneDesc& desc, const Config& config, int own);

}  // namespace heddle::schedule
