#pragma once

#include "schedule/region/cpu/drafts.h"

namespace heddle::schedule {

// Loops that run inside each iteration of a kernel. The positions that the kernel's gathers read do not vary along
// these loops, so positions and weights are computed once for all their steps.
struct SharedLoops {
  std::vector<VarId> vars;  // outermost first
  uint64_t saved = 0;       // bit mask of the loops in `vars` along which positions do not vary
  // The number of elements along the vector variable that keeps the shared values in the cache.
  int64_t block = 0;
};
// Returns no loops if sharing is not worth it. `parallel` is the bit mask of variables that an iteration may fix.
SharedLoops shared_loops(const KernelExprs& exprs, VarId vector, uint64_t parallel, const CpuTarget& cpu);

// The innermost variable along which whole rows are gathered, where each row is contiguous along the vector variable.
// Positions and weights of a block of rows are then computed together, since computing them one by one would take
// longer than copying the rows. nullopt if the positions of a row need little computation.
std::optional<VarId> gathered_rows(const KernelExprs& exprs, std::optional<VarId> vector, uint64_t parallel,
                                   const CpuTarget& cpu);

// Moves the computation of gather positions to a separate stage, if they vary along fewer loops than their stage.
void share_positions(CpuDrafts& k);

}  // namespace heddle::schedule
