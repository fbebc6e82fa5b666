#pragma once

#include "schedule/region/cpu/drafts.h"

namespace heddle::schedule {

// Loops that each iteration of a kernel runs by itself, since the positions that its gathers read do not vary along
// them. Positions and weights are then computed once for all steps of these loops.
struct SharedLoops {
  std::vector<VarId> vars;  // outermost first
  uint64_t saved = 0;       // of these, the loops along which positions do not vary, as bits
  int64_t block = 0;        // elements along the vector variable, so that the shared values fit
};
// Returns no loops if nothing is worth sharing. `parallel`: the variables that an iteration may fix.
SharedLoops shared_loops(const KernelExprs& exprs, VarId vector, uint64_t parallel, const CpuTarget& cpu);

// The innermost variable along which whole rows are gathered, each contiguous along the vector variable. Positions and
// weights of a block of rows are then computed together, since one at a time they would take longer than the rows.
// nullopt if a row needs little such computation.
std::optional<VarId> gathered_rows(const KernelExprs& exprs, std::optional<VarId> vector, uint64_t parallel,
                                   const CpuTarget& cpu);

// Gives positions of gathers that vary along fewer loops than their stage a separate stage.
void share_positions(CpuDrafts& k);

}  // namespace heddle::schedule
