#include "schedule/region/mapping.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::schedule {

uint64_t vars_of(const Root& root) {
  uint64_t own = 0;
  for (VarId v : root.vars) own |= bit(v);
  return own;
}

uint64_t parallel_vars(const KernelExprs& exprs) {
  uint64_t parallel = exprs.all_root_vars();
  for (const ReductionSite& i : exprs.sites) parallel &= i.kept;
  return parallel;
}

int levels_of(const KernelExprs& exprs) {
  int levels = 0;
  for (const ReductionSite& i : exprs.sites) levels = std::max(levels, i.level + 1);
  return levels;
}

int64_t reduced_volume(const KernelExprs& exprs) {
  int64_t most = 1;
  for (const ReductionSite& i : exprs.sites) most = std::max(most, exprs.volume(i.reduced));
  return most;
}

const ReductionSite* widest_reduction(const KernelExprs& exprs) {
  const ReductionSite* widest = nullptr;
  for (const ReductionSite& i : exprs.sites) {
    if (i.node->op != ir::Op::kReduce) continue;
    if (widest == nullptr || exprs.volume(i.reduced) > exprs.volume(widest->reduced)) widest = &i;
  }
  return widest;
}

int64_t iterations_of(const IndexPool& indices, const std::vector<GridDim>& grid) {
  int64_t n = 1;
  for (const GridDim& d : grid) n *= (indices.extent(d.var) + d.block - 1) / d.block;
  return n;
}

void add_fixed(RegionMapping& mapping, VarId v) {
  mapping.fixed |= bit(v);
  mapping.grid.push_back({v, 1, 0});
}

void add_blocked(RegionMapping& mapping, IndexPool& indices, VarId v, int64_t block) {
  block = std::clamp<int64_t>(block, 1, indices.extent(v));
  if (block == 1) return add_fixed(mapping, v);
  mapping.grid.push_back({v, block, indices.new_var(indices.extent(v))});
}

void cut_behind(const ReductionSite& reduction, const Frontier& frontier, MapResult& result) {
  std::set<ir::ValueId> cuts = frontier(reduction.value);
  if (cuts.empty()) cuts.insert(reduction.value);
  result.cuts.insert(cuts.begin(), cuts.end());
}

void cut_recomputed(const KernelExprs& exprs, const ir::Graph& graph, const Frontier& frontier, MapResult& result) {
  for (const ReductionSite& i : exprs.sites) {
    const int64_t size = element_count(graph.shape(i.value));
    if (exprs.volume(i.kept) <= size + size / 2) continue;
    cut_behind(i, frontier, result);
    result.reason = fmt::format("where it is read {} elements would be reduced {} times each",
                                exprs.volume(i.reduced) * size, exprs.volume(i.kept) / std::max<int64_t>(size, 1));
  }
}

std::set<ir::ValueId> first_results(const KernelExprs& exprs, const Frontier& frontier) {
  std::set<ir::ValueId> cuts;
  for (const ReductionSite& i : exprs.sites) {
    if (i.level != 0) continue;
    const std::set<ir::ValueId> after = frontier(i.value);
    cuts.insert(after.begin(), after.end());
  }
  return cuts;
}

bool repeats_roots(const KernelExprs& exprs, uint64_t parallel, MapResult& result) {
  const bool repeats = std::any_of(exprs.roots.begin(), exprs.roots.end(),
                                   [&](const Root& root) { return (parallel & ~vars_of(root)) != 0; });
  if (repeats) result.reason = "an output has fewer elements than there are independent iterations";
  return repeats;
}

}  // namespace heddle::schedule
