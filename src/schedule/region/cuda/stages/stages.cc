#include "schedule/region/cuda/stages/stages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/divide.h"
#include "schedule/region/cuda/stages/ahead.h"
#include "schedule/region/cuda/stages/finish.h"
#include "schedule/region/cuda/stages/layouts.h"
#include "schedule/region/cuda/stages/results.h"
#include "schedule/region/cuda/stages/reuse.h"

namespace heddle::schedule {
namespace {

constexpr StageStep<CudaDrafts> kCudaSteps[] = {
    {"place_results", "results of reductions: a register where an iteration has one, else shared memory",
     place_results},
    {"draft_reductions", "a sweep for each set of loops that is reduced", draft_reductions},
    {"draft_stores", "stores go with the first sweep over their points that comes late enough", draft_stores},
    {"choose_layouts", "how points lie on threads", choose_layouts},
    {"merge_moments", "sums of squared deviations join the sum before them", merge_moments},
    {"store_shared_columns", "costly values of whole rows or columns get a sweep of their own", store_shared_columns},
    {"keep_between_stages", "what later sweeps need again stays in registers or shared memory", keep_between_stages},
    {"load_ahead", "a chain of reductions does not wait for memory several times", load_ahead},
    {"load_next", "the next turn's loads are under way while a turn is worked on", load_next},
    {"load_before", "what all turns of the serial loop read stays in registers, or in the L1", load_before},
    {"transpose_loads", "loads side by side along the other variable go through a tile in shared memory",
     transpose_loads},
    {"compensate_sums", "few steps are written out; long sums keep what rounding takes", compensate_sums},
    {"find_once", "operands that are read once may leave the L2", find_once},
    {"mark_barriers", "a sweep that needs what other threads wrote waits for them", mark_barriers},
    {"mark_copies", "copies are waited for where one of them is read first", mark_copies},
};

bool needs_wide_index(const CudaDrafts& k) {
  int64_t most = std::max<int64_t>(2 * k.desc->iterations(), 1);
  for (const InputOperand& leaf : k.exprs.inputs) most = std::max(most, element_count(leaf.shape));
  for (const Root& root : k.exprs.roots) most = std::max(most, element_count(k.graph.shape(root.value)));
  bool any = most > INT32_MAX / 2;
  for (ExprId e = 0; e < k.pool.size(); ++e) {
    const Range r = k.pool.indices.range(k.pool[e].index);
    any = any || r.lo < INT32_MIN / 2 || r.hi > INT32_MAX / 2;
  }
  return any;
}

std::string describe(const CudaDraft& d) {
  const ThreadLayout& s = d.layout;
  std::string text = fmt::format("sweep over v{}", fmt::join(s.loops, ", v"));
  if (!d.placed) text = fmt::format("sweep over the loops {:#x}", d.loops);
  if (d.placed) text += fmt::format(" by {} threads in vectors of {}", s.active, s.vector);
  for (const CudaReduction& r : d.reductions) text += ", " + r.comment;
  if (!d.stores.empty()) text += fmt::format(", {} stores", d.stores.size());
  if (!d.cached.empty()) text += fmt::format(", keeps {}", d.cached.size());
  if (d.async_copy) text += ", copies";
  if (d.sync) text += ", after a barrier";
  return text;
}

}  // namespace

std::span<const StageStep<CudaDrafts>> cuda_stage_steps() {
  return kCudaSteps;
}

std::string describe(const CudaDrafts& k) {
  std::string text;
  const auto add = [&](std::string_view when, const std::vector<CudaDraft>& drafts) {
    for (const CudaDraft& d : drafts) text += fmt::format("\n  {}{}", when, describe(d));
  };
  add("before the serial loop: ", k.before);
  add("ahead: ", k.ahead);
  add("", k.drafts);
  add("after the serial loop: ", k.after);
  return text;
}

std::shared_ptr<CudaStitchDesc> build_cuda_stages(KernelExprs& exprs, const ir::Graph& graph,
                                                  const CudaMapping& mapping, const Target& target) {
  CudaDrafts k(std::make_shared<CudaStitchDesc>(), exprs, graph, mapping, target.gpu());
  run_steps(cuda_stage_steps(), k);
  const auto take = [](std::vector<CudaDraft>& from, std::vector<CudaStage>& to) {
    for (CudaDraft& d : from) to.push_back(std::move(static_cast<CudaStage&>(d)));
  };
  take(k.before, k.desc->before);
  take(k.ahead, k.desc->ahead);
  take(k.drafts, k.desc->stages);
  take(k.after, k.desc->after);
  k.desc->wide_index = needs_wide_index(k);
  return k.desc;
}

}  // namespace heddle::schedule
