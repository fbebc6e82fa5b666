#include "schedule/region/cpu/reuse.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/expr/expr_walk.h"

namespace heddle::schedule {
namespace {

constexpr int kWorthSpreading = 4;  // how often a costly value must be used per computation to get a stage of its own

void share(CpuDrafts& k, size_t first, ExprId e, uint64_t loops) {
  const DType dtype = compute_dtype(k.pool[e].dtype);
  std::vector<Store>& stores = k.drafts[first].stores;
  ExprId loaded = 0;
  // Where the value is an output, the output itself is the place.
  const auto output =
      std::find_if(stores.begin(), stores.end(), [&](const Store& s) { return s.value == e && s.dtype == dtype; });
  if (output != stores.end()) {
    loaded = k.pool.load(dtype, output->buffer, output->at);
  } else if (!k.fits_scratch(k.loop_volume(loops), dtype)) {
    k.schemes.push_back(
        {k.text_of(e), Scheme::kIndependent, false,
         fmt::format("computed in each stage: {} values do not fit the scratch", k.loop_volume(loops))});
    return;
  } else {
    const uint32_t buffer = k.new_scratch(dtype, k.loop_volume(loops));
    const Index at = k.scratch_position(loops);
    stores.push_back({buffer, dtype, at, e, false});
    loaded = k.pool.load(dtype, buffer, at);
  }
  k.schemes.push_back({k.text_of(e), Scheme::kRegional, false,
                       fmt::format("costs {:.0f} cycles and several stages read it", k.cycles(e))});
  for (size_t later = first + 1; later < k.drafts.size(); ++later) k.replace(k.drafts[later], {{e, loaded}});
}

}  // namespace

void spread_columns(CpuDrafts& k) {
  if (!k.options.data_reuse) return;
  const auto take = [&](const CpuDraft& d, ExprId e) {
    const uint64_t own = k.inner(k.pool.vars(e));
    if (k.pool[e].kind != Expr::Kind::kOp || own == d.loops || k.cycles(e) < kWorthStoring) return false;
    const std::optional<VarId> vector = k.vector_of(d);
    const bool of_lanes = vector && (own >> *vector & 1), of_rows = k.mapping.rows && (own >> *k.mapping.rows & 1);
    return (of_lanes || of_rows) && k.loop_volume(d.loops) >= kWorthSpreading * k.loop_volume(own) &&
           k.fits_scratch(k.loop_volume(own), k.pool[e].dtype);
  };
  store_apart(
      k, take, [](CpuDraft&) {}, [](CpuDraft&) {});
}

void share_between_stages(CpuDrafts& k) {
  if (!k.options.data_reuse) return;
  for (size_t first = 0; first + 1 < k.drafts.size(); ++first) {
    const std::vector<ExprId> made = unconditional(k.pool, k.drafts[first].roots());
    const uint64_t loops = k.drafts[first].loops;
    std::vector<ExprId> roots;
    for (size_t later = first + 1; later < k.drafts.size(); ++later) {
      const std::vector<ExprId> own = k.drafts[later].roots();
      roots.insert(roots.end(), own.begin(), own.end());
    }
    const auto take = [&](ExprId e) {
      const Expr::Kind kind = k.pool[e].kind;
      return std::binary_search(made.begin(), made.end(), e) &&
             (kind == Expr::Kind::kOp || kind == Expr::Kind::kLoad) && k.inner(k.pool.vars(e)) == loops && loops != 0 &&
             k.cycles(e) >= kWorthStoring;
    };
    for (ExprId e : topmost(k.pool, roots, take)) share(k, first, e, loops);
  }
}

void stream_large_outputs(CpuDrafts& k) {
  std::set<uint32_t> read;
  std::vector<ExprId> roots;
  for (const CpuDraft& d : k.drafts) {
    const std::vector<ExprId> own = d.roots();
    roots.insert(roots.end(), own.begin(), own.end());
  }
  visit_exprs(k.pool, roots, [&](ExprId e) {
    if (k.pool[e].kind == Expr::Kind::kLoad) read.insert(k.pool[e].id);
  });
  for (CpuDraft& d : k.drafts) {
    for (Store& s : d.stores) {
      if (s.buffer >= k.first_scratch || read.count(s.buffer) != 0) continue;
      const ir::ValueId root = k.exprs.roots[s.buffer - k.exprs.inputs.size()].value;
      s.stream = element_count(k.graph.shape(root)) * static_cast<int64_t>(size_of(s.dtype)) > cached_bytes(k.cpu);
    }
  }
}

}  // namespace heddle::schedule
