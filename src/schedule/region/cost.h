#pragma once

#include <algorithm>

#include "schedule/region/exprs/kernel_exprs.h"

namespace heddle::schedule {

// Cycles that an expression node costs per native f32 vector, in the measure of ir::OpCost, beyond what overlaps with a
// load: a coarse throughput model for choosing what to store and how finely to cut, not a prediction.
double node_cycles(const ExprPool& pool, ExprId e);
// The sum over what varies with a variable: what a step of its loop computes.
double varying_cycles(const ExprPool& pool, const std::vector<ExprId>& roots, VarId var);

// What a kernel moves and computes.
struct Work {
  double bytes = 0;   // buffers read and written once
  double cycles = 0;  // of vector arithmetic
  double seconds(const CpuTarget& cpu) const;
};
Work work_of(const KernelExprs& exprs, const ir::Graph& graph, const CpuTarget& cpu);

// Bytes beyond which a buffer is not in the caches any more when the next kernel comes to it. A virtual machine may
// report the last-level cache of a whole socket, of which it has a share.
inline int64_t cached_bytes(const CpuTarget& cpu) {
  return std::min<int64_t>(cpu.l3_bytes, 32 << 20) / 2;
}

// The stride of an index along a variable; nullopt where it is not affine in it.
std::optional<int64_t> stride_along(const ExprPool& pool, const Index& index, VarId var);

}  // namespace heddle::schedule
