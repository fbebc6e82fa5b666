#include "schedule/region/cuda/stages/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

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

// Whether `e` is (x - s / count)^2, x being what `sum` adds and s its result.
bool squares_deviation(const CudaDrafts& k, ExprId e, const CudaReduction& sum, int64_t count) {
  const auto is_op = [&](ExprId id, ir::Op op) { return k.pool[id].kind == Expr::Kind::kOp && k.pool[id].op == op; };
  const auto is_sum = [&](ExprId id) {
    const Expr& expr = k.pool[id];
    if (sum.scratch) return expr.kind == Expr::Kind::kLoad && expr.id == *sum.scratch && expr.index == sum.at;
    return expr.kind == Expr::Kind::kLocal && expr.id == sum.local;
  };
  const auto is_number = [&](ExprId id, double value) {
    constexpr double kExact = 1e-6;
    if (k.pool[id].kind != Expr::Kind::kConstant) return false;
    return std::abs(std::bit_cast<double>(k.pool[id].bits) / value - 1) < kExact;
  };
  const auto is_mean = [&](ExprId id) {
    const auto n = static_cast<double>(count);
    const std::vector<ExprId>& args = k.pool[id].args;
    if (is_op(id, ir::Op::kDiv)) return is_sum(args[0]) && is_number(args[1], n);
    if (!is_op(id, ir::Op::kMul)) return false;
    return (is_sum(args[0]) && is_number(args[1], 1 / n)) || (is_sum(args[1]) && is_number(args[0], 1 / n));
  };
  if (!is_op(e, ir::Op::kMul) || k.pool[e].args[0] != k.pool[e].args[1]) return false;
  const ExprId difference = k.pool[e].args[0];
  if (!is_op(difference, ir::Op::kSub)) return false;
  const auto& args = k.pool[difference].args;
  return (args[0] == sum.value && is_mean(args[1])) || (args[1] == sum.value && is_mean(args[0]));
}

}  // namespace

void place_results(CudaDrafts& k) {
  for (const ReductionSite& i : k.exprs.sites) {
    auto r = k.reduction_at<CudaReduction>(i);
    std::string reason = place(k, i, r);
    Scheme scheme = r.scratch ? Scheme::kRegional : Scheme::kLocal;
    if (k.mapping.cta_group > 1) {
      scheme = k.mapping.whole_grid ? Scheme::kGlobal : Scheme::kCluster;
      reason += fmt::format(", of {} blocks", k.mapping.cta_group);
    }
    k.schemes.push_back({r.comment, scheme, true, reason});
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
          carried ? draft_over(k.drafts, kept, i.level) : draft_for(k.drafts, i.level, kept | k.inner(i.reduced), kept);
      if (i.node->op == ir::Op::kScan) draft.scan = {i.node->attrs.flag("exclusive"), i.node->attrs.flag("reverse")};
      draft.reductions.push_back(std::move(r));
    }
  }
}

void draft_stores(CudaDrafts& k) {
  for (size_t n = 0; n < k.exprs.roots.size(); ++n) {
    const Root& root = k.exprs.roots[n];
    bool carried = false;
    visit_exprs(k.pool, {root.expr}, [&](ExprId id) {
      const bool result = k.pool[id].kind == Expr::Kind::kLocal && k.pool[id].id < k.exprs.sites.size();
      carried = carried || (result && k.is_carried(k.exprs.sites[k.pool[id].id]));
    });
    // What is carried is stored when the serial loop has ended.
    CudaDraft& draft = carried
                           ? draft_over(k.after, k.inner(vars_of(root)), 0)
                           : draft_over(k.drafts, k.inner(vars_of(root)), level_of(k.pool, k.exprs.sites, root.expr));
    draft.stores.push_back({static_cast<uint32_t>(k.exprs.inputs.size() + n), k.graph.dtype(root.value), root.at,
                            k.resolve(root.expr), false});
  }
  sort_drafts(k.drafts);
}

void merge_moments(CudaDrafts& k) {
  constexpr int64_t kMostOfThread = 512;          // values, whose differences to one of them are summed plainly
  constexpr int kMostLanes = 4;                   // of a block that is alone, whose registers decide how many there are
  if (k.mapping.team <= k.mapping.lanes) return;  // what it saves is that warps or blocks wait for each other twice
  const auto fits = [&](const CudaDraft& d, const CudaReduction& r) {
    return !d.scan && r.combine == Combine::kSum && !r.squares && compute_dtype(r.dtype) == DType::kF32 &&
           (r.over == CudaReduction::Over::kTeam ||
            (r.over == CudaReduction::Over::kColumn && k.mapping.cta_group > 1));
  };
  for (size_t first = 0; first < k.drafts.size(); ++first) {
    for (CudaReduction& sum : k.drafts[first].reductions) {
      CudaDraft& d = k.drafts[first];
      const int64_t count = k.loop_volume(d.loops) / k.loop_volume(d.kept);
      if (!fits(d, sum) || k.desc->inner_steps(d.layout) * d.layout.vector > kMostOfThread) continue;
      if (k.mapping.cta_group == 1 && (d.layout.vector > kMostLanes || d.layout.replicated)) continue;
      for (size_t later = first + 1; later < k.drafts.size() && !sum.squares; ++later) {
        CudaDraft& other = k.drafts[later];
        if (!other.shares(d) || other.kept != d.kept) continue;
        const auto found = std::find_if(other.reductions.begin(), other.reductions.end(), [&](const CudaReduction& r) {
          return fits(other, r) && r.over == sum.over && squares_deviation(k, r.value, sum, count);
        });
        if (found == other.reductions.end()) continue;
        sum.squares = CudaReduction::Squares{{found->local, found->scratch, found->at}, count, std::nullopt};
        sum.comment += " and squared deviations";
        const ExprId deviation = k.pool[found->value].args[0];
        other.reductions.erase(found);
        const auto drift = std::find_if(other.reductions.begin(), other.reductions.end(), [&](const CudaReduction& r) {
          return fits(other, r) && r.over == sum.over && r.value == deviation;
        });
        if (drift == other.reductions.end()) continue;
        sum.squares->drift = CudaReduction::Result{drift->local, drift->scratch, drift->at};
        other.reductions.erase(drift);
      }
    }
  }
  std::erase_if(k.drafts, [](const CudaDraft& d) { return d.reductions.empty() && d.stores.empty() && !d.scan; });
}

}  // namespace heddle::schedule
