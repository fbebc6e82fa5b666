#pragma once

#include "schedule/region/region.h"

// The target-independent part of mapping a kernel.
namespace heddle::schedule {

inline uint64_t bit(VarId v) {
  return uint64_t{1} << v;
}

uint64_t vars_of(const Root& root);
// Variables that index every root and the result of every reduction.
uint64_t parallel_vars(const KernelExprs& exprs);
// The length of the longest chain of dependent reductions.
int levels_of(const KernelExprs& exprs);
// The element count of the largest reduction of any kind.
int64_t reduced_volume(const KernelExprs& exprs);
// The reduction over most elements; null if there is none.
const ReductionSite* widest_reduction(const KernelExprs& exprs);
int64_t iterations_of(const IndexPool& indices, const std::vector<GridDim>& grid);

void add_fixed(RegionMapping& mapping, VarId v);
// One iteration has `block` neighbouring elements along `v`.
void add_blocked(RegionMapping& mapping, IndexPool& indices, VarId v, int64_t block);

// Cuts at reductions that each iteration of their consumers would compute again.
void cut_recomputed(const KernelExprs& exprs, const ir::Graph& graph, const Frontier& frontier, MapResult& result);
// Cuts after a reduction, or at the reduction itself if a root is among the values computed from it.
void cut_behind(const ReductionSite& reduction, const Frontier& frontier, MapResult& result);
// The values in which the results of the first reductions are handed on; none of them is a root.
std::set<ir::ValueId> first_results(const KernelExprs& exprs, const Frontier& frontier);
// True if some root would be computed several times; `result` then gives the reason.
bool repeats_roots(const KernelExprs& exprs, uint64_t parallel, MapResult& result);

}  // namespace heddle::schedule
