#pragma once

#include "schedule/region/cpu/drafts.h"

namespace heddle::schedule {

// Loops that run inside each iteration of a kernel. The positions that the kernel's gathers read do not vary along
// these loops. So the positions, and the weights that belong to them, are computed once for all steps of the loops.
struct SharedLoops {
  std::vector<VarId> vars;  // outermost first
  uint64_t saved = 0;       // bit mask of the loops in `vars` along which positions do not vary
  // The number of elements along the vector variable that keeps the shared values in the cache.
  int64_t block = 0;
};
// Returns no loops if sharing does not pay. `parallel` is the bit mask of the variables that may be held constant
// within an iteration of the kernel.
SharedLoops shared_loops(const KernelExprs& exprs, VarId vector, uint64_t parallel, const CpuTarget& cpu);

// The innermost variable along which whole rows are gathered, where each row is contiguous along the vector variable.
// The positions and weights of a block of rows are then computed together, since computing those of one row at a time
// would take longer than copying the rows. nullopt if the positions of a row need little computation.
std::optional<VarId> gathered_rows(const KernelExprs& exprs, std::optional<VarId> vector, uint64_t parallel,
                                   const CpuTarget& cpu);

// Moves the computation of gather positions to a separate stage if the positions vary along fewer loops than the stage
// that uses them.
void share_positions(CpuDrafts& k);

}  // namespace heddle::schedule
