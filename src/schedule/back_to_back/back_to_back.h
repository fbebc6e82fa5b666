#pragma once

#include <string>

#include "schedule/back_to_back/form.h"

namespace heddle::schedule {

// Two contractions as one kernel, the second of which multiplies what the first one makes, which stays on the chip.
// `first.epilogue` has one store, whose value is handed on: its operand tells the type alone, and so does the operand
// that the second product multiplies by `second`.
struct BackToBackDesc {
  ContractionDesc first, second;
};

// What the models predict for two contractions, in us.
struct BackToBackTimes {
  double one_kernel = 0, two_kernels = 0;
};

// What a kind of target does its own way. Without state; both functions throw kUnsupportedOperator where there is no
// kernel for both.
class BackToBackBackend {
 public:
  virtual ~BackToBackBackend() = default;
  virtual ScheduledGroup schedule(const ir::Graph& graph, const BackToBackForm& form, const Target& target,
                                  ConfigSource* configs) const = 0;
  virtual BackToBackTimes times(const ir::Graph& graph, const BackToBackForm& form, const Target& target) const = 0;
  // How many times as fast one kernel has to be by these: more than what predictions err by.
  virtual double least_gain() const = 0;
};

// A group of kind kBackToBack (passes/fusion/README.md) as a kernel; `configs` as in schedule(). Throws
// kUnsupportedOperator.
ScheduledGroup schedule_back_to_back(const ir::Graph& graph, const ir::Group& group, const Target& target,
                                     ConfigSource* configs = nullptr);

// Whether schedule_back_to_back() serves a group, and is expected to be faster than a kernel for each contraction;
// `reason` says why either way.
bool can_run_back_to_back(const ir::Graph& graph, const ir::Group& group, const Target& target, std::string* reason);

}  // namespace heddle::schedule
