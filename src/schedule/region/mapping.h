#pragma once

#include "schedule/region/region.h"

// The target-independent part of mapping a kernel.
namespace heddle::schedule {

inline uint64_t bit(VarId v) {
  return uint64_t{1} << v;
}

uint64_t vars_of(const Root& root);
// Returns the variables that index every root and the result of every reduction.
uint64_t parallel_vars(const KernelExprs& exprs);
// Returns the length of the longest chain of dependent reductions.
int levels_of(const KernelExprs& exprs);
// Returns the number of elements per result of the largest reduction of any kind.
int64_t reduced_volume(const KernelExprs& exprs);
// Returns the reduction over the most elements, or null if there is none.
const ReductionSite* widest_reduction(const KernelExprs& exprs);
int64_t iterations_of(const IndexPool& indices, const std::vector<GridDim>& grid);

void add_fixed(RegionMapping& mapping, VarId v);
// Adds `v` to the grid so that one iteration computes `block` neighbouring elements along `v`.
void add_blocked(RegionMapping& mapping, IndexPool& indices, VarId v, int64_t block);

// Cuts the region at each reduction that the iterations of its consumers would otherwise compute repeatedly.
void cut_recomputed(const KernelExprs& exprs, const ir::Graph& graph, const Frontier& frontier, MapResult& result);
// Cuts the region at the values in which a reduction's result is best stored (Frontier), or at the reduction itself if
// the reduction or one of its consumers is a root.
void cut_behind(const ReductionSite& reduction, const Frontier& frontier, MapResult& result);
// Returns the values in which the results of the innermost reductions, which use no other reduction, are best stored
// (Frontier). None of these values is a root.
std::set<ir::ValueId> first_results(const KernelExprs& exprs, const Frontier& frontier);
// True if some root would be computed repeatedly by a kernel that is parallel over the variables `parallel` (a bit
// mask). `result` then gets the reason.
bool repeats_roots(const KernelExprs& exprs, uint64_t parallel, MapResult& result);

}  // namespace heddle::schedule
