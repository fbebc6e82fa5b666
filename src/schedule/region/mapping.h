#pragma once

#include "schedule/region/region.h"

// What mapping a kernel has in common on all targets.
namespace heddle::schedule {

inline uint64_t bit(VarId v) {
  return uint64_t{1} << v;
}

uint64_t vars_of(const Root& root);
// Variables that every root and the result of every reduction lie on.
uint64_t parallel_vars(const KernelExprs& exprs);
// How many reductions wait for each other at most.
int levels_of(const KernelExprs& exprs);
// Of the reduction, of any kind, over most elements.
int64_t reduced_volume(const KernelExprs& exprs);
// The reduction over most elements; null: there is none.
const ReductionSite* widest_reduction(const KernelExprs& exprs);
int64_t iterations_of(const IndexPool& indices, const std::vector<GridDim>& grid);

void add_fixed(RegionMapping& mapping, VarId v);
// One iteration has `block` neighbouring elements along `v`.
void add_blocked(RegionMapping& mapping, IndexPool& indices, VarId v, int64_t block);

// Cuts reductions whose results each of their consumers' iterations would compute again.
void cut_recomputed(const KernelExprs& exprs, const ir::Graph& graph, const Frontier& frontier, MapResult& result);
// Cuts behind a reduction, or at it where a root is among what is made of it.
void cut_behind(const ReductionSite& reduction, const Frontier& frontier, MapResult& result);
// Where the results of the first reductions are handed on, none of them a root.
std::set<ir::ValueId> first_results(const KernelExprs& exprs, const Frontier& frontier);
// Whether some root would be computed several times; says so in `result`.
bool repeats_roots(const KernelExprs& exprs, uint64_t parallel, MapResult& result);

}  // namespace heddle::schedule
