#include "schedule/region/cpu/drafts.h"

#include <algorithm>

#include "schedule/expr/expr_walk.h"

namespace heddle::schedule {

std::vector<ExprId> CpuDraft::roots() const {
  std::vector<ExprId> all = values;
  for (const Store& s : stores) all.push_back(s.value);
  return all;
}

CpuDrafts::CpuDrafts(std::shared_ptr<CpuStitchDesc> begun, KernelExprs& kernel, const ir::Graph& region,
                     const Mapping& mapped, const CpuTarget& machine, const StitchOptions& choices,
                     const Constants& constants)
    : RegionDrafts(kernel, region, mapped, *begun),
      mapping(mapped),
      cpu(machine),
      options(choices),
      constant_of(constants),
      desc(std::move(begun)) {}

void CpuDrafts::replace(CpuDraft& d, const std::map<ExprId, ExprId>& with) {
  for (ExprId& e : d.values) e = pool.substitute(e, {}, with);
  for (Store& s : d.stores) s.value = pool.substitute(s.value, {}, with);
}

double CpuDrafts::cycles(ExprId e) {
  const auto [at, is_new] = known_cycles.try_emplace(e, 0);
  if (is_new) visit_exprs(pool, {e}, [&](ExprId id) { at->second += node_cycles(pool, id); });
  return at->second;
}

bool CpuDrafts::fits_scratch(int64_t elements, DType dtype) const {
  int64_t bytes = elements * static_cast<int64_t>(size_of(compute_dtype(dtype)));
  for (const Scratch& s : scratch) bytes += s.elements * static_cast<int64_t>(size_of(s.dtype));
  return bytes <= cpu.l2_bytes * 3 / 4;
}

std::optional<VarId> CpuDrafts::vector_of(const CpuDraft& d) const {
  if (d.loops == 0) return std::nullopt;
  std::map<VarId, int> votes = unit_stride_votes(d.roots(), d.stores, d.loops);
  // Kept results lie in scratch, next to each other along one variable only.
  const std::vector<VarId> kept = ordered(d.kept, mapping.vector);
  const auto allowed = [&](VarId v) { return d.reductions.empty() || (d.kept >> v & 1) == 0 || v == kept.back(); };
  std::erase_if(votes, [&](const auto& vote) { return !allowed(vote.first); });
  std::optional<VarId> best;
  if (mapping.vector && (d.loops >> *mapping.vector & 1)) best = mapping.vector;
  // A transposing kernel keeps its block shape.
  if (mapping.transposed && best) return best;
  // Lanes along which a value is gathered take a load each.
  if (best) votes.try_emplace(*best, 0);
  visit_exprs(pool, d.roots(), [&](ExprId e) {
    if (pool[e].kind != Expr::Kind::kLoad || !pool.indices.reads_values(pool[e].index)) return;
    for (auto& [v, n] : votes) {
      if (!stride_along(pool, pool[e].index, v)) n -= 2 * cpu.lanes_f32();
    }
  });
  for (const auto& [v, n] : votes) {
    if (!best || n > votes[*best]) best = v;
  }
  if (best) return best;
  for (VarId v : ordered(d.loops, std::nullopt)) {
    if (loop_extent(v) > 1 && allowed(v)) best = v;
  }
  return best;
}

}  // namespace heddle::schedule
