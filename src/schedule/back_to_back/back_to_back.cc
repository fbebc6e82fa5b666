#include "schedule/back_to_back/back_to_back.h"

#include "base/check.h"
#include "schedule/backend.h"

namespace heddle::schedule {

ScheduledGroup schedule_back_to_back(const ir::Graph& graph, const ir::Group& group, const Target& target,
                                     ConfigSource* configs) {
  const BackToBackForm form = back_to_back_form(graph, group);
  if (element_count(graph.shape(graph.node(group.anchor).outputs[0])) == 0) return {};
  return backend_of(target).back_to_back().schedule(graph, form, target, configs);
}

bool can_run_back_to_back(const ir::Graph& graph, const ir::Group& group, const Target& target, std::string* reason) {
  try {
    const BackToBackForm form = back_to_back_form(graph, group);
    const BackToBackBackend& backend = backend_of(target).back_to_back();
    const BackToBackTimes times = backend.times(graph, form, target);
    const bool yes = times.one_kernel * backend.least_gain() < times.two_kernels;
    const std::string why = yes ? "what the first one makes stays on the chip"
                            : times.one_kernel < times.two_kernels
                                ? fmt::format("the gain is less than the {:.0f}% by which predictions err",
                                              100 * backend.least_gain() - 100)
                                : "as one kernel it is slower";
    *reason =
        fmt::format("{}: {:.1f} us predicted, {:.1f} us as two kernels", why, times.one_kernel, times.two_kernels);
    return yes;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupportedOperator && error.code() != ErrorCode::kUnsupportedType) throw;
    *reason = error.why();
    return false;
  }
}

}  // namespace heddle::schedule
