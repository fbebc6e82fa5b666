#pragma once

#include <algorithm>

#include "schedule/region/exprs/kernel_exprs.h"

namespace heddle::schedule {

// Returns the cost of an expression node per native f32 vector, in the units of ir::OpCost. Cycles that overlap with a
// load are not counted. This is a coarse throughput model, used to decide which values to store and how finely to split
// loops. It does not predict times.
double node_cycles(const ExprPool& pool, ExprId e);
// Returns the cost of one iteration of the loop over `var`: the sum of node_cycles() over the expressions that depend
// on `var`.
double varying_cycles(const ExprPool& pool, const std::vector<ExprId>& roots, VarId var);

// The memory traffic and computation of a kernel.
struct Work {
  double bytes = 0;   // if each buffer is read and written once
  double cycles = 0;  // of vector arithmetic
  double seconds(const CpuTarget& cpu) const;
};
Work work_of(const KernelExprs& exprs, const ir::Graph& graph, const CpuTarget& cpu);

// Buffers larger than this are no longer in the caches when the next kernel reads them. The L3 size is limited to 32
// MiB here, since a virtual machine may report the last-level cache of a whole socket although it can use only a part
// of that cache.
inline int64_t cached_bytes(const CpuTarget& cpu) {
  return std::min<int64_t>(cpu.l3_bytes, 32 << 20) / 2;
}

// Returns the stride of an index along a variable, or nullopt if the index is not affine in the variable.
std::optional<int64_t> stride_along(const ExprPool& pool, const Index& index, VarId var);

}  // namespace heddle::schedule
