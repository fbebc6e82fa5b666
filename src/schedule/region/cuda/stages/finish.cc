#include "schedule/region/cuda/stages/finish.h"

#include <algorithm>

#include "schedule/region/cuda/stages/layouts.h"
#include "schedule/region/mapping.h"
#include "tile/core/config.h"

namespace heddle::schedule {
namespace {

std::vector<std::vector<CudaDraft>*> all_drafts(CudaDrafts& k) {
  return {&k.ahead, &k.before, &k.drafts, &k.after};
}

void transpose_loads_of(CudaDrafts& k, CudaDraft& d) {
  const VarId u = *k.mapping.transposed, v = *k.mapping.vector;
  const GridDim *block_u = k.blocked(u), *block_v = k.blocked(v);
  if (block_u == nullptr || block_v == nullptr || d.loops != (bit(u) | bit(v))) return;
  // An odd row keeps threads that walk down a column in different banks.
  const RegionDrafts::Tile tile{*block_u, *block_v, block_u->block, block_v->block + 1};
  const auto fits = [&](DType stored) {
    return k.fits_shared(tile.height * tile.width * static_cast<int64_t>(size_of(compute_dtype(stored))));
  };
  std::map<ExprId, ExprId> with;
  d.transposed = k.through_tiles(d.roots(), tile, fits, with);
  if (with.empty()) return;
  k.replace(d, with);
  d.layout.vector = vector_for(k, d, v);
}

bool touches_scratch(const CudaDrafts& k, const CudaDraft& d, bool& writes) {
  for (const CudaReduction& r : d.reductions) writes = writes || r.scratch.has_value();
  for (const Store& s : d.stores) writes = writes || s.buffer >= k.first_scratch;
  std::set<uint32_t> own;
  for (const TransposedLoad& t : d.transposed) own.insert(t.scratch);
  bool reads = false;
  std::vector<ExprId> roots = d.roots();
  roots.resize(roots.size() - d.cached.size());
  visit_exprs(k.pool, roots, [&](ExprId e) {
    const Expr& expr = k.pool[e];
    reads = reads || (expr.kind == Expr::Kind::kLoad && expr.id >= k.first_scratch && own.count(expr.id) == 0);
  });
  return reads;
}

}  // namespace

void transpose_loads(CudaDrafts& k) {
  if (!k.mapping.transposed) return;
  for (auto* drafts : all_drafts(k)) {
    for (CudaDraft& d : *drafts) transpose_loads_of(k, d);
  }
}

void compensate_sums(CudaDrafts& k) {
  for (auto* drafts : all_drafts(k)) {
    for (CudaDraft& d : *drafts) {
      d.unrolled = k.steps_of(d.layout) <= kMostSteps;
      for (CudaReduction& r : d.reductions) {
        const bool sum = r.combine == Combine::kSum && is_float(r.dtype);
        r.compensated =
            sum && r.over != CudaReduction::Over::kCarried && k.desc->inner_steps(d.layout) > tile::kLongSum;
      }
    }
  }
}

void find_once(CudaDrafts& k) {
  constexpr int64_t kWorthwhile = 1 << 20;  // bytes; less does not push anything out of the L2
  std::map<uint32_t, std::vector<ExprId>> loads;
  for (const auto* drafts : all_drafts(k)) {
    for (const CudaDraft& d : *drafts) {
      for (const TransposedLoad& t : d.transposed) loads[t.from].resize(2);
      visit_exprs(k.pool, d.roots(), [&](ExprId e) {
        const Expr& expr = k.pool[e];
        if (expr.kind == Expr::Kind::kLoad && expr.id < k.exprs.inputs.size()) loads[expr.id].push_back(e);
      });
    }
  }
  for (const auto& [buffer, found] : loads) {
    const int64_t elements = element_count(k.exprs.inputs[buffer].shape);
    const bool large = elements * static_cast<int64_t>(size_of(k.exprs.inputs[buffer].dtype)) >= kWorthwhile;
    if (found.size() == 1 && large && k.volume(k.pool.vars(found[0])) == elements) k.desc->evict_first.insert(buffer);
  }
}

void mark_barriers(CudaDrafts& k) {
  for (auto* drafts : {&k.drafts, &k.after}) {
    bool dirty = false;
    for (CudaDraft& d : *drafts) {
      bool writes = false;
      d.sync = touches_scratch(k, d, writes) && dirty;
      if (d.sync) dirty = false;
      dirty = dirty || writes;
    }
  }
}

// A barrier behind copies keeps the compiler from letting them wait for what the next sweep loads, too.
void mark_copies(CudaDrafts& k) {
  std::set<uint32_t> copied;
  for (size_t i = 0; i < k.drafts.size(); ++i) {
    CudaDraft& d = k.drafts[i];
    d.sync = d.sync || (i > 0 && k.drafts[i - 1].async_copy && !d.async_copy);
    visit_exprs(k.pool, d.roots(), [&](ExprId e) {
      d.wait_async = d.wait_async || (k.pool[e].kind == Expr::Kind::kLocal && copied.count(k.pool[e].id) != 0);
    });
    if (d.wait_async) return;
    if (d.async_copy) copied.insert(d.cached[0].local);
  }
}

}  // namespace heddle::schedule
