#pragma once

#include <algorithm>

#include "schedule/region/exprs/kernel_exprs.h"

namespace heddle::schedule {

// Cycles of an expression node per native f32 vector, in units of ir::OpCost, beyond what overlaps with a load. A
// coarse throughput model that decides what to store and how finely to cut; not a prediction.
double node_cycles(const ExprPool& pool, ExprId e);
// The sum over the expressions that vary with a variable: the cost of one step of its loop.
double varying_cycles(const ExprPool& pool, const std::vector<ExprId>& roots, VarId var);

// The memory traffic and computation of a kernel.
struct Work {
  double bytes = 0;   // buffers read and written once
  double cycles = 0;  // of vector arithmetic
  double seconds(const CpuTarget& cpu) const;
};
Work work_of(const KernelExprs& exprs, const ir::Graph& graph, const CpuTarget& cpu);

// Buffers larger than this are no longer in the caches when the next kernel reads them. A virtual machine may report
// the last-level cache of a whole socket although it only has a share of it.
inline int64_t cached_bytes(const CpuTarget& cpu) {
  return std::min<int64_t>(cpu.l3_bytes, 32 << 20) / 2;
}

// The stride of an index along a variable; nullopt if it is not affine in it.
std::optional<int64_t> stride_along(const ExprPool& pool, const Index& index, VarId var);

}  // namespace heddle::schedule
