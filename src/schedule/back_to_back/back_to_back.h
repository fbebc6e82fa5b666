#pragma once

#include <string>

#include "schedule/back_to_back/form.h"

namespace heddle::schedule {

// Two contractions as one kernel. The result of the first contraction stays on the chip and is an operand of the
// second. `first.epilogue` has one store, whose value is this result. The operand of the store, and the corresponding
// operand of `second`, only specify the type of the result.
struct CudaBackToBackDesc {
  ContractionDesc first, second;
};

// Predicted times of two contractions as one kernel and as two kernels, in us.
struct BackToBackTimes {
  double one_kernel = 0, two_kernels = 0;
};

// The target-specific part. Stateless. schedule() and times() throw kUnsupportedOperator if no kernel supports both
// contractions.
class BackToBackBackend {
 public:
  virtual ~BackToBackBackend() = default;
  virtual ScheduledGroup schedule(const ir::Graph& graph, const BackToBackForm& form, const Target& target,
                                  ConfigSource* configs) const = 0;
  virtual BackToBackTimes times(const ir::Graph& graph, const BackToBackForm& form, const Target& target) const = 0;
  // Returns the smallest predicted speed-up at which one kernel is chosen instead of two. It is larger than the error
  // of the predictions.
  virtual double least_gain() const = 0;
};

// Schedules a group of kind kBackToBack (passes/fusion/README.md) as one kernel. `configs`: see schedule(). Throws
// kUnsupportedOperator.
ScheduledGroup schedule_back_to_back(const ir::Graph& graph, const ir::Group& group, const Target& target,
                                     ConfigSource* configs = nullptr);

// True if schedule_back_to_back() supports a group and is expected to beat one kernel per contraction. `reason`
// explains the answer in either case.
bool can_run_back_to_back(const ir::Graph& graph, const ir::Group& group, const Target& target, std::string* reason);

}  // namespace heddle::schedule
