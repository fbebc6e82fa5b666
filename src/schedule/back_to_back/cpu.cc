#include "schedule/back_to_back/cpu.h"

#include "base/check.h"

namespace heddle::schedule {
namespace {

class CpuBackToBack : public BackToBackBackend {
 public:
  ScheduledGroup schedule(const ir::Graph&, const BackToBackForm&, const Target&, ConfigSource*) const override {
    fail(ErrorCode::kUnsupportedOperator, "back to back", "the target has no kernel that runs both");
  }
  BackToBackTimes times(const ir::Graph& graph, const BackToBackForm& form, const Target& target) const override {
    schedule(graph, form, target, nullptr);
    return {};
  }
};

}  // namespace

const BackToBackBackend& cpu_back_to_back() {
  static const CpuBackToBack backend;
  return backend;
}

}  // namespace heddle::schedule
