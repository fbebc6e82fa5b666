#pragma once

#include "schedule/region/cpu/drafts.h"

namespace heddle::schedule {

// Loops that the iterations of a kernel keep to themselves, since what its gathers read does not vary along them: where
// they lie and with what weight is computed once for all steps of these loops.
struct SharedLoops {
  std::vector<VarId> vars;  // outermost first
  uint64_t saved = 0;       // those of them along which positions do not vary, as bits
  int64_t block = 0;        // how many elements along the vector variable leave room for what is shared
};
// Nothing is shared if there are none. `parallel`: the variables that an iteration may fix.
SharedLoops shared_loops(const KernelExprs& exprs, VarId vector, uint64_t parallel, const CpuTarget& cpu);

// The innermost variable along which whole rows are gathered that lie along the vector variable; nothing where little
// is computed for each row. One lane at a time that would take longer than the rows.
std::optional<VarId> gathered_rows(const KernelExprs& exprs, std::optional<VarId> vector, uint64_t parallel,
                                   const CpuTarget& cpu);

// Positions of gathers that vary along fewer loops than their stage get a stage of their own.
void share_positions(CpuDrafts& k);

}  // namespace heddle::schedule
