#include <fmt/format.h>

#include <algorithm>

#include "schedule/expr/expr_walk.h"
#include "schedule/region/cpu/drafts.h"
#include "schedule/region/mapping.h"

namespace heddle::schedule {
namespace {

// A result that varies within an iteration of the grid.
void place_in_scratch(CpuDrafts& k, const ReductionSite& i, uint64_t loops, Reduction& r) {
  constexpr int64_t kLongColumn = 128;  // additions in a row after which a running sum is compensated
  const DType result = k.graph.dtype(i.value);
  r.at = k.scratch_position(loops);
  r.scratch = k.new_scratch(is_arg(r.combine) ? r.dtype : result, k.loop_volume(loops));
  uint32_t holds = *r.scratch;
  // One running sum over a whole column loses digits that E[x^2] - E[x]^2 then needs; along a row there are many.
  const bool vertical = k.mapping.vector && (loops >> *k.mapping.vector & 1);
  const bool is_long = k.volume(i.reduced) > kLongColumn;
  if (vertical && is_long && i.node->op == ir::Op::kReduce && r.combine == Combine::kSum && is_float(r.dtype)) {
    r.error_buffer = k.new_scratch(result, k.loop_volume(loops));
  }
  if (is_arg(r.combine)) holds = *(r.position_buffer = k.new_scratch(DType::kI64, k.loop_volume(loops)));
  if (i.node->op == ir::Op::kScan) return;  // its steps are stored, not its end
  const ExprId local = k.pool.local(result, i.local, i.position);
  k.in_scratch[local] = k.pool.load(compute_dtype(result), holds, r.at);
}

CpuDraft& add_draft(CpuDrafts& k, int level, uint64_t loops, uint64_t kept) {
  CpuDraft& d = k.drafts.emplace_back();
  d.level = level;
  d.loops = loops;
  d.kept = kept;
  return d;
}

CpuDraft& draft_for(CpuDrafts& k, int level, uint64_t loops, uint64_t kept) {
  for (CpuDraft& d : k.drafts) {
    if (k.options.dominant_merging && d.level == level && d.loops == loops && d.kept == kept) return d;
  }
  return add_draft(k, level, loops, kept);
}

// The first sweep over these points that comes late enough.
CpuDraft& sweep_over(CpuDrafts& k, uint64_t loops, int level) {
  CpuDraft* best = nullptr;
  for (CpuDraft& d : k.drafts) {
    if (d.scan) best = &d;  // alone in its kernel
    if (!k.options.dominant_merging) continue;
    if (d.loops == loops && d.level >= level && (best == nullptr || d.level < best->level)) best = &d;
  }
  return best != nullptr ? *best : add_draft(k, level, loops, loops);
}

}  // namespace

void place_results(CpuDrafts& k) {
  for (const ReductionSite& i : k.exprs.sites) {
    const uint64_t loops = k.inner(i.kept);
    Reduction& r = k.results.emplace_back();
    r.combine = combine_of(*i.node);
    r.dtype = k.pool[i.operand].dtype;
    r.local = i.local;
    r.comment = k.name_of(i);
    r.last = i.node->op == ir::Op::kArgReduce && i.node->attrs.flag("last");
    k.schemes.push_back({k.name_of(i), loops == 0 ? Scheme::kLocal : Scheme::kRegional, true,
                         loops == 0 ? "one value per iteration of the grid"
                                    : fmt::format("{} values within an iteration", k.loop_volume(loops))});
    if (loops != 0) place_in_scratch(k, i, loops, r);
  }
}

void draft_reductions(CpuDrafts& k) {
  for (size_t n = 0; n < k.exprs.sites.size(); ++n) {
    const ReductionSite& i = k.exprs.sites[n];
    const uint64_t kept = k.inner(i.kept);
    CpuDraft& draft = draft_for(k, i.level, kept | k.inner(i.reduced), kept);
    draft.sites.push_back(n);
    if (i.node->op == ir::Op::kScan) draft.scan = {i.node->attrs.flag("exclusive"), i.node->attrs.flag("reverse")};
    draft.values.push_back(k.resolve(i.operand));
    draft.positions.push_back(is_arg(k.results[n].combine) ? k.resolve(i.along) : 0);
  }
}

void draft_stores(CpuDrafts& k) {
  for (size_t n = 0; n < k.exprs.roots.size(); ++n) {
    const Root& root = k.exprs.roots[n];
    int level = 0;
    visit_exprs(k.pool, {root.expr}, [&](ExprId id) {
      if (k.pool[id].kind == Expr::Kind::kLocal) level = std::max(level, k.exprs.sites[k.pool[id].id].level + 1);
    });
    sweep_over(k, k.inner(vars_of(root)), level)
        .stores.push_back({static_cast<uint32_t>(k.exprs.inputs.size() + n), k.graph.dtype(root.value), root.at,
                           k.resolve(root.expr), false});
  }
  std::stable_sort(k.drafts.begin(), k.drafts.end(), [](const CpuDraft& a, const CpuDraft& b) {
    return std::pair(a.level, a.sites.empty()) < std::pair(b.level, b.sites.empty());
  });
}

}  // namespace heddle::schedule
