#include "schedule/region/cpu/stages.h"

#include <fmt/ranges.h>

#include "schedule/region/cpu/finish.h"
#include "schedule/region/cpu/results.h"
#include "schedule/region/cpu/reuse.h"
#include "schedule/region/cpu/share.h"

namespace heddle::schedule {
namespace {

constexpr StageStep<CpuDrafts> kCpuSteps[] = {
    {"place_results", "results of reductions: a local where an iteration has one, else scratch", place_results},
    {"draft_reductions", "a stage for each set of loops that is reduced", draft_reductions},
    {"draft_stores", "stores go with the first stage over their points that comes late enough", draft_stores},
    {"share_positions", "positions of gathers that vary along fewer loops get a stage of their own", share_positions},
    {"spread_columns", "costly values that vary along fewer loops get a stage of their own", spread_columns},
    {"share_between_stages", "costly values that a later stage needs again are stored by the first",
     share_between_stages},
    {"stream_large_outputs", "what nothing reads while it is in the caches passes them by", stream_large_outputs},
    {"lay_out_loops", "loops in their order, vectors, transposed blocks, pieces", lay_out_loops},
    {"prefetch_next", "memory is read for the next iteration while later stages compute", prefetch_next},
};

}  // namespace

std::span<const StageStep<CpuDrafts>> cpu_stage_steps() {
  return kCpuSteps;
}

std::string describe(const CpuDrafts& k) {
  std::string text;
  for (const CpuDraft& d : k.drafts) {
    text += fmt::format("\n  stage over v{}", fmt::join(k.ordered(d.loops, std::nullopt), ", v"));
    for (const Reduction& r : d.reductions) text += ", " + r.comment;
    if (!d.stores.empty()) text += fmt::format(", {} stores", d.stores.size());
  }
  return text;
}

std::shared_ptr<CpuStitchDesc> build_stages(KernelExprs& exprs, const ir::Graph& graph, const Mapping& mapping,
                                            const Target& target, const StitchOptions& options,
                                            const Constants& constants) {
  CpuDrafts k(std::make_shared<CpuStitchDesc>(), exprs, graph, mapping, target.cpu, options, constants);
  run_steps(cpu_stage_steps(), k);
  return k.desc;
}

}  // namespace heddle::schedule
