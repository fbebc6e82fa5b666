#include "schedule/region/cpu/results.h"

#include <fmt/format.h>

#include "schedule/region/mapping.h"
#include "tile/core/config.h"

namespace heddle::schedule {
namespace {

// How many values of one step of a sum are in each value of the next; 1 where `value` is no sum.
int64_t summed_before(const ir::Graph& graph, ir::ValueId value) {
  const ir::Node& node = graph.producer(value);
  if (node.op == ir::Op::kCast || node.op == ir::Op::kReshape) return summed_before(graph, node.inputs[0]);
  if (node.op != ir::Op::kReduce || node.attrs.text("kind") != "sum") return 1;
  const int64_t results = element_count(graph.shape(value));
  return results == 0 ? 1 : element_count(graph.shape(node.inputs[0])) / results;
}

// A result that varies within an iteration of the grid.
void place_in_scratch(CpuDrafts& k, const ReductionSite& i, uint64_t loops, Reduction& r) {
  const DType result = k.graph.dtype(i.value);
  r.at = k.scratch_position(loops);
  r.scratch = k.new_scratch(is_arg(r.combine) ? r.dtype : result, k.loop_volume(loops));
  uint32_t holds = *r.scratch;
  // One running sum over a whole column loses digits that E[x^2] - E[x]^2 then needs; along a row there are many.
  const bool vertical = k.mapping.vector && (loops >> *k.mapping.vector & 1);
  const bool is_long = k.volume(i.reduced) >= tile::kLongSum || r.sums_long_sums;
  if (vertical && is_long && !is_arg(r.combine) && r.combine == Combine::kSum && is_float(r.dtype)) {
    r.error_buffer = k.new_scratch(result, k.loop_volume(loops));
  }
  if (is_arg(r.combine)) holds = *(r.position_buffer = k.new_scratch(DType::kI64, k.loop_volume(loops)));
  if (i.node->op == ir::Op::kScan) return;  // its steps are stored, not its end
  const ExprId local = k.pool.local(result, i.local, i.position);
  k.in_scratch[local] = k.pool.load(compute_dtype(result), holds, r.at);
}

}  // namespace

void place_results(CpuDrafts& k) {
  for (const ReductionSite& i : k.exprs.sites) {
    const uint64_t loops = k.inner(i.kept);
    Reduction& r = k.results.emplace_back(k.reduction_at<Reduction>(i));
    r.sums_long_sums = r.combine == Combine::kSum && i.node->op == ir::Op::kReduce &&
                       summed_before(k.graph, i.node->inputs[0]) >= tile::kLongSum;
    k.schemes.push_back({r.comment, loops == 0 ? Scheme::kLocal : Scheme::kRegional, true,
                         loops == 0 ? "one value per iteration of the grid"
                                    : fmt::format("{} values within an iteration", k.loop_volume(loops))});
    if (loops != 0) place_in_scratch(k, i, loops, r);
  }
}

void draft_reductions(CpuDrafts& k) {
  for (size_t n = 0; n < k.exprs.sites.size(); ++n) {
    const ReductionSite& i = k.exprs.sites[n];
    const uint64_t kept = k.inner(i.kept);
    CpuDraft& draft = draft_for(k.drafts, i.level, kept | k.inner(i.reduced), kept, k.options.dominant_merging);
    draft.reductions.push_back(k.results[n]);
    if (i.node->op == ir::Op::kScan) draft.scan = {i.node->attrs.flag("exclusive"), i.node->attrs.flag("reverse")};
    draft.values.push_back(k.resolve(i.operand));
    draft.positions.push_back(is_arg(k.results[n].combine) ? k.resolve(i.along) : 0);
  }
}

void draft_stores(CpuDrafts& k) {
  for (size_t n = 0; n < k.exprs.roots.size(); ++n) {
    const Root& root = k.exprs.roots[n];
    draft_over(k.drafts, k.inner(vars_of(root)), level_of(k.pool, k.exprs.sites, root.expr), k.options.dominant_merging)
        .stores.push_back({static_cast<uint32_t>(k.exprs.inputs.size() + n), k.graph.dtype(root.value), root.at,
                           k.resolve(root.expr), false});
  }
  sort_drafts(k.drafts);
}

}  // namespace heddle::schedule
