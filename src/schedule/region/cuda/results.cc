#include <fmt/format.h>

#include <algorithm>

#include "schedule/region/cuda/drafts.h"
#include "schedule/region/mapping.h"

namespace heddle::schedule {
namespace {

using Over = CudaReduction::Over;

// Whether a later reduction goes over the columns, one by one: it cannot read them as one vector.
bool is_folded(const CudaDrafts& k, VarId columns) {
  return std::any_of(k.exprs.sites.begin(), k.exprs.sites.end(),
                     [&](const ReductionSite& i) { return (k.inner(i.reduced) & bit(columns)) != 0; });
}

bool is_column_of_thread(const CudaDrafts& k, uint64_t loops) {
  const std::optional<VarId>& vector = k.mapping.vector;
  return k.mapping.team == 1 && vector && loops == bit(*vector) && k.blocked(*vector) != nullptr &&
         !is_folded(k, *vector);
}

// Where a reduction's result goes; says why.
std::string place(CudaDrafts& k, const ReductionSite& i, CudaReduction& r) {
  const uint64_t loops = k.inner(i.kept);
  if (k.is_carried(i)) {
    r.over = Over::kCarried;
    return fmt::format("running results of {} turns stay in registers", k.loop_extent(*k.mapping.serial));
  }
  if (loops == 0) return "one value per iteration of the grid";
  if (is_column_of_thread(k, loops)) {
    r.over = Over::kThread;
    return "one column per thread";
  }
  const DType result = k.graph.dtype(i.value);
  r.over = Over::kGroup;  // or a column's, by the layout
  r.at = k.scratch_position(loops);
  r.scratch = k.new_scratch(is_arg(r.combine) ? DType::kI64 : result, k.loop_volume(loops));
  if (i.node->op != ir::Op::kScan) {
    const ExprId local = k.pool.local(result, i.local, i.position);
    k.in_scratch[local] = k.pool.load(compute_dtype(result), *r.scratch, r.at);
  }
  return fmt::format("{} values within an iteration", k.loop_volume(loops));
}

CudaDraft& add_draft(std::vector<CudaDraft>& drafts, int level, uint64_t loops, uint64_t kept) {
  CudaDraft& d = drafts.emplace_back();
  d.level = level;
  d.loops = loops;
  d.kept = kept;
  return d;
}

CudaDraft& draft_for(CudaDrafts& k, int level, uint64_t loops, uint64_t kept) {
  for (CudaDraft& d : k.drafts) {
    if (d.level == level && d.loops == loops && d.kept == kept && !d.scan) return d;
  }
  return add_draft(k.drafts, level, loops, kept);
}

// The first sweep over these points that comes late enough.
CudaDraft& sweep_over(CudaDrafts& k, uint64_t loops, int level) {
  CudaDraft* best = nullptr;
  for (CudaDraft& d : k.drafts) {
    if (d.scan) best = &d;  // alone in its kernel
    if (d.loops == loops && d.level >= level && (best == nullptr || d.level < best->level)) best = &d;
  }
  return best != nullptr ? *best : add_draft(k.drafts, level, loops, loops);
}

// When the serial loop has ended.
CudaDraft& after_sweep(CudaDrafts& k, uint64_t loops) {
  for (CudaDraft& d : k.after) {
    if (d.loops == loops) return d;
  }
  return add_draft(k.after, 0, loops, loops);
}

}  // namespace

void place_results(CudaDrafts& k) {
  for (const ReductionSite& i : k.exprs.sites) {
    CudaReduction r;
    r.combine = combine_of(*i.node);
    r.dtype = k.pool[i.operand].dtype;
    r.local = i.local;
    r.comment = k.name_of(i);
    r.last = i.node->op == ir::Op::kArgReduce && i.node->attrs.flag("last");
    std::string reason = place(k, i, r);
    Scheme scheme = r.scratch ? Scheme::kRegional : Scheme::kLocal;
    if (k.mapping.cta_group > 1) {
      scheme = k.mapping.whole_grid ? Scheme::kGlobal : Scheme::kCluster;
      reason += fmt::format(", of {} blocks", k.mapping.cta_group);
    }
    k.schemes.push_back({k.name_of(i), scheme, true, reason});
    k.results.push_back(std::move(r));
  }
}

void draft_reductions(CudaDrafts& k) {
  // What is carried joins the sweeps of the others.
  for (const bool carried : {false, true}) {
    for (size_t n = 0; n < k.exprs.sites.size(); ++n) {
      const ReductionSite& i = k.exprs.sites[n];
      if (k.is_carried(i) != carried) continue;
      CudaReduction r = k.results[n];
      r.value = k.resolve(i.operand);
      if (is_arg(r.combine)) r.position = k.resolve(i.along);
      const uint64_t kept = k.inner(i.kept);
      CudaDraft& draft =
          carried ? sweep_over(k, kept, i.level) : draft_for(k, i.level, kept | k.inner(i.reduced), kept);
      if (i.node->op == ir::Op::kScan) draft.scan = {i.node->attrs.flag("exclusive"), i.node->attrs.flag("reverse")};
      draft.reductions.push_back(std::move(r));
    }
  }
}

void draft_stores(CudaDrafts& k) {
  for (size_t n = 0; n < k.exprs.roots.size(); ++n) {
    const Root& root = k.exprs.roots[n];
    bool carried = false;
    int level = 0;
    visit_exprs(k.pool, {root.expr}, [&](ExprId id) {
      if (k.pool[id].kind != Expr::Kind::kLocal || k.pool[id].id >= k.exprs.sites.size()) return;
      const ReductionSite& i = k.exprs.sites[k.pool[id].id];
      level = std::max(level, i.level + 1);
      carried = carried || k.is_carried(i);
    });
    const uint64_t loops = k.inner(vars_of(root));
    CudaDraft& draft = carried ? after_sweep(k, loops) : sweep_over(k, loops, level);
    draft.stores.push_back({static_cast<uint32_t>(k.exprs.inputs.size() + n), k.graph.dtype(root.value), root.at,
                            k.resolve(root.expr), false});
  }
  std::stable_sort(k.drafts.begin(), k.drafts.end(), [](const CudaDraft& a, const CudaDraft& b) {
    return std::pair(a.level, a.reductions.empty()) < std::pair(b.level, b.reductions.empty());
  });
}

}  // namespace heddle::schedule
