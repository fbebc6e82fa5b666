#include "schedule/region/cpu/share.h"

#include <algorithm>

#include "schedule/expr/expr_walk.h"
#include "schedule/region/mapping.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kWorthSharing = 4;  // steps of the outer loops that must read a position for it to be stored
constexpr int64_t kEnough = 64;       // steps beyond which computing positions costs nothing any more
constexpr int64_t kPositionBytes = 4;
constexpr double kWorthComputing = 32;  // what is computed for a row to have a loop over rows

struct Positions {
  uint64_t vars;
  Index index;
};

// What an index adds for each lane, where that is not affine: together what varies with the same loops.
std::vector<Positions> positions_of(const ExprPool& pool, const Index& index, VarId vector, uint64_t loops) {
  std::vector<Positions> found;
  for (const auto& [id, c] : index.terms) {
    const Index term{0, {{id, c}}};
    if (pool.indices.atom(id).kind == Atom::Kind::kVar || (pool.vars(term) >> vector & 1) == 0) continue;
    const uint64_t vars = pool.vars(term) & loops;
    const auto same = std::find_if(found.begin(), found.end(), [&](const Positions& p) { return p.vars == vars; });
    if (same == found.end()) {
      found.push_back({vars, term});
    } else {
      same->index.terms.emplace_back(id, c);
    }
  }
  std::erase_if(found, [&](const Positions& p) {
    const Range range = pool.indices.range(p.index);
    return range.lo < 0 || range.hi >= INT32_MAX;
  });
  return found;
}

bool is_gather(const ExprPool& pool, ExprId e, VarId vector) {
  return pool[e].kind == Expr::Kind::kLoad && !stride_along(pool, pool[e].index, vector) &&
         pool.indices.reads_values(pool[e].index);
}

// Loops from the innermost on, until positions are read often enough.
uint64_t saving_loops(const KernelExprs& exprs, const std::vector<Positions>& positions, VarId vector,
                      uint64_t parallel) {
  uint64_t saved = 0;
  for (size_t i = exprs.domain.vars.size(); i-- > 0 && exprs.volume(saved) < kEnough;) {
    const VarId v = exprs.domain.vars[i];
    const auto fixed = [&](const Positions& p) { return (p.vars >> v & 1) == 0; };
    if (v != vector && (parallel >> v & 1) && std::all_of(positions.begin(), positions.end(), fixed)) saved |= bit(v);
  }
  return exprs.volume(saved) < kWorthSharing ? 0 : saved;
}

// Bytes of scratch for each element along the vector variable, where an iteration has the loops `inner`.
int64_t bytes_per_element(const KernelExprs& exprs, const std::vector<Positions>& positions, VarId vector,
                          uint64_t saved, uint64_t inner) {
  int64_t bytes = 0;
  for (const Positions& p : positions) bytes += kPositionBytes * exprs.volume(p.vars & inner & ~bit(vector));
  const auto take = [&](ExprId e) {
    const uint64_t vars = exprs.pool.vars(e);
    return exprs.pool[e].kind == Expr::Kind::kOp && (vars & saved) == 0 && (vars >> vector & 1);
  };
  for (ExprId e : topmost(exprs.pool, exprs.values(), take)) {
    bytes += static_cast<int64_t>(size_of(compute_dtype(exprs.pool[e].dtype))) *
             exprs.volume(exprs.pool.vars(e) & inner & ~bit(vector));
  }
  return std::max<int64_t>(bytes, kPositionBytes);
}

// By how many vectors at most the positions that a constant lists ascend within a vector; 0: by more than two, or they
// descend.
int64_t vectors_between(const Tensor& table, int64_t first, int64_t count, int64_t extent, int64_t lanes) {
  const auto at = [&](int64_t i) {
    int64_t value = 0;
    if (table.dtype() == DType::kI64) {
      value = table.values<int64_t>()[static_cast<size_t>(i)];
    } else {
      value = table.values<int32_t>()[static_cast<size_t>(i)];
    }
    return std::clamp<int64_t>(value < 0 ? value + extent : value, 0, extent - 1);
  };
  int64_t most = 0;
  for (int64_t i = first; i < first + count; ++i) {
    if (i > first && at(i) < at(i - 1)) return 0;
    most = std::max(most, at(i) - at(std::max(first, i - lanes + 1)));
  }
  return most < lanes ? 1 : most < 2 * lanes ? 2 : 0;
}

int64_t vectors_between(const CpuDrafts& k, const Positions& positions, VarId vector) {
  if (positions.index.terms.size() != 1 || positions.index.terms[0].second != 1) return 0;
  const Atom& atom = k.pool.indices.atom(positions.index.terms[0].first);
  if (atom.kind != Atom::Kind::kDynamic) return 0;
  const Expr& load = k.pool[atom.id];
  if (load.kind != Expr::Kind::kLoad || load.id >= k.exprs.inputs.size()) return 0;
  if (load.dtype != DType::kI64 && load.dtype != DType::kI32) return 0;
  if (k.pool.vars(load.index) != bit(vector) || stride_along(k.pool, load.index, vector) != 1) return 0;
  const Tensor* table = k.constant_of(k.exprs.inputs[load.id].value);
  if (table == nullptr) return 0;
  return vectors_between(*table, load.index.constant, k.pool.indices.extent(vector), atom.a, k.cpu.lanes_f32());
}

// Stores what is shared in a draft over its loops before the one that reads it.
class SharedStore {
 public:
  explicit SharedStore(CpuDrafts& k) : k_(k) {}

  // Positions as an index from scratch.
  Index read(std::vector<CpuDraft>& before, int level, const Positions& positions, VarId vector) {
    const auto [known, is_new] = stored_.try_emplace({level, positions.index});
    if (is_new) known->second = store(before, level, positions, vector);
    return known->second;
  }

  // A value that varies with `loops`, as a load from scratch.
  Expr value(std::vector<CpuDraft>& before, int level, uint64_t loops, ExprId e) {
    const uint32_t buffer = k_.new_scratch(k_.pool[e].dtype, k_.loop_volume(loops));
    const DType dtype = k_.scratch.back().dtype;
    const Index at = k_.scratch_position(loops);
    auto draft = std::find_if(before.begin(), before.end(), [&](const CpuDraft& d) {
      return d.level == level && d.loops == loops && d.reductions.empty();
    });
    if (draft == before.end()) {
      add_draft(before, level, loops, loops);
      draft = before.end() - 1;
    }
    draft->stores.push_back({buffer, dtype, at, e, false});
    return {.kind = Expr::Kind::kLoad, .dtype = dtype, .id = buffer, .index = at};
  }

 private:
  Index store(std::vector<CpuDraft>& before, int level, const Positions& positions, VarId vector) {
    ExprPool& pool = k_.pool;
    const ExprId e = pool.add({.kind = Expr::Kind::kIndex, .dtype = DType::kI32, .index = positions.index});
    Expr load = value(before, level, positions.vars, e);
    if (!k_.mapping.rows) load.lo = vectors_between(k_, positions, vector);
    return pool.indices.dynamic(pool.add(std::move(load)), pool.indices.range(positions.index).hi + 1, true);
  }

  CpuDrafts& k_;
  std::map<std::pair<int, Index>, Index> stored_;
};

// What lanes pick from memory with a stride, as the weights that belong to positions, costs a scalar load each as well.
void share_strided(CpuDrafts& k, const CpuDraft& draft, VarId vector, SharedStore& store, std::vector<CpuDraft>& before,
                   std::map<ExprId, ExprId>& with) {
  for (ExprId e : unconditional(k.pool, draft.roots())) {
    const Expr load = k.pool[e];
    if (load.kind != Expr::Kind::kLoad || load.id >= k.first_scratch || load.dtype == DType::kBool) continue;
    const int64_t stride = stride_along(k.pool, load.index, vector).value_or(0);
    const uint64_t own = k.inner(k.pool.vars(load.index));
    if (stride == 0 || stride == 1 || k.loop_volume(draft.loops) < kWorthSharing * k.loop_volume(own)) continue;
    if (k.fits_scratch(k.loop_volume(own), load.dtype)) with[e] = k.pool.add(store.value(before, draft.level, own, e));
  }
}

}  // namespace

SharedLoops shared_loops(const KernelExprs& exprs, VarId vector, uint64_t parallel, const CpuTarget& cpu) {
  SharedLoops result;
  std::vector<Positions> positions;
  visit_exprs(exprs.pool, exprs.values(), [&](ExprId e) {
    if (!is_gather(exprs.pool, e, vector)) return;
    for (Positions& p : positions_of(exprs.pool, exprs.pool[e].index, vector, ~uint64_t{0})) {
      positions.push_back(std::move(p));
    }
  });
  std::sort(positions.begin(), positions.end(), [](auto& a, auto& b) { return a.index < b.index; });
  positions.erase(std::unique(positions.begin(), positions.end(), [](auto& a, auto& b) { return a.index == b.index; }),
                  positions.end());
  if (positions.empty()) return result;
  result.saved = saving_loops(exprs, positions, vector, parallel);
  if (result.saved == 0) return result;
  // Loops between them stay inside as well, so that results are written, and images read, in the order of memory.
  uint64_t between = 0;
  for (VarId v : exprs.domain.vars) {
    if ((result.saved & (bit(v) - 1)) != 0 && v != vector) between |= bit(v) & parallel & ~result.saved;
  }
  const int64_t extent = exprs.pool.indices.extent(vector);
  const int64_t least = std::min<int64_t>(extent, 16 * cpu.lanes_f32());
  for (const auto& [loops, room] :
       {std::pair(result.saved | between, cpu.l1_bytes / 2), {result.saved, cpu.l2_bytes / 4}}) {
    result.block = room / bytes_per_element(exprs, positions, vector, result.saved, loops | ~parallel);
    if (result.block < least) continue;
    for (VarId v : exprs.domain.vars) {
      if (loops >> v & 1) result.vars.push_back(v);
    }
    return result;
  }
  return {};
}

std::optional<VarId> gathered_rows(const KernelExprs& exprs, std::optional<VarId> vector, uint64_t parallel,
                                   const CpuTarget& cpu) {
  if (!vector) return std::nullopt;
  const ExprPool& pool = exprs.pool;
  uint64_t along = 0;
  visit_exprs(pool, exprs.values(), [&](ExprId e) {
    if (pool[e].kind != Expr::Kind::kLoad || stride_along(pool, pool[e].index, *vector) != 1) return;
    for (const auto& [id, c] : pool[e].index.terms) {
      if (pool.indices.atom(id).kind == Atom::Kind::kDynamic) along |= pool.vars(Index{0, {{id, c}}});
    }
  });
  std::optional<VarId> rows;
  for (const VarId v : exprs.domain.vars) {
    if ((along & parallel) >> v & 1) rows = v;
  }
  if (!rows || pool.indices.extent(*rows) < cpu.lanes_f32()) return std::nullopt;
  double cycles = 0;
  visit_exprs(pool, exprs.values(), [&](ExprId e) {
    const uint64_t vars = pool.vars(e);
    if ((vars >> *rows & 1) && !(vars >> *vector & 1)) cycles += node_cycles(pool, e);
  });
  return cycles >= kWorthComputing ? rows : std::nullopt;
}

void share_positions(CpuDrafts& k) {
  if (!k.options.data_reuse || !k.mapping.vector || k.mapping.packed || k.mapping.transposed) return;
  // Lanes of the loops that compute positions.
  const VarId vector = k.mapping.rows.value_or(*k.mapping.vector);
  std::vector<CpuDraft> result;
  SharedStore store(k);
  for (size_t n = 0; n < k.drafts.size(); ++n) {
    CpuDraft& draft = k.drafts[n];
    std::map<ExprId, ExprId> with;
    for (ExprId e : unconditional(k.pool, draft.roots())) {
      if (!is_gather(k.pool, e, vector) || (draft.loops >> vector & 1) == 0) continue;
      Expr load = k.pool[e];
      for (const Positions& p : positions_of(k.pool, load.index, vector, k.inner(~uint64_t{0}))) {
        if (k.loop_volume(draft.loops) < kWorthSharing * k.loop_volume(p.vars)) continue;
        if (!k.fits_scratch(k.loop_volume(p.vars), DType::kI32)) continue;
        const Index there = store.read(result, draft.level, p, vector);
        load.index = k.pool.indices.add(k.pool.indices.add(load.index, k.pool.indices.scale(p.index, -1)), there);
      }
      if (load.index != k.pool[e].index) with[e] = k.pool.add(load);
    }
    if (!with.empty()) {
      share_strided(k, draft, vector, store, result, with);
      k.schemes.push_back(
          {fmt::format("positions of {} gathers", with.size()), Scheme::kRegional, false,
           fmt::format("each is read {} times", k.loop_volume(draft.loops) / k.loop_volume(bit(vector)))});
    }
    for (size_t later = n; later < k.drafts.size(); ++later) k.replace(k.drafts[later], with);
    result.push_back(std::move(draft));
  }
  k.drafts = std::move(result);
}

}  // namespace heddle::schedule
