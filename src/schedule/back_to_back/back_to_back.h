#pragma once

#include <string>

#include "schedule/back_to_back/form.h"

namespace heddle::schedule {

// Two contractions as one kernel. The second multiplies the result of the first, which stays on the chip.
// `first.epilogue` has one store, of that result. Its operand only tells the type, as does the corresponding operand of
// `second`.
struct CudaBackToBackDesc {
  ContractionDesc first, second;
};

// Predicted times of two contractions, in us.
struct BackToBackTimes {
  double one_kernel = 0, two_kernels = 0;
};

// The target-specific part. Stateless. schedule() and times() throw kUnsupportedOperator if there is no kernel for both
// contractions.
class BackToBackBackend {
 public:
  virtual ~BackToBackBackend() = default;
  virtual ScheduledGroup schedule(const ir::Graph& graph, const BackToBackForm& form, const Target& target,
                                  ConfigSource* configs) const = 0;
  virtual BackToBackTimes times(const ir::Graph& graph, const BackToBackForm& form, const Target& target) const = 0;
  // The least speed-up of one kernel, by these times, that makes it the choice: larger than the error of predictions.
  virtual double least_gain() const = 0;
};

// Schedules a group of kind kBackToBack (passes/fusion/README.md) as a kernel; `configs` as in schedule(). Throws
// kUnsupportedOperator.
ScheduledGroup schedule_back_to_back(const ir::Graph& graph, const ir::Group& group, const Target& target,
                                     ConfigSource* configs = nullptr);

// True if schedule_back_to_back() supports a group and is expected to beat a kernel per contraction. `reason` explains
// the answer, true or false.
bool can_run_back_to_back(const ir::Graph& graph, const ir::Group& group, const Target& target, std::string* reason);

}  // namespace heddle::schedule
