#pragma once

#include <vector>

#include "schedule/sequence/phase.h"

namespace heddle::schedule {

// Predicted times in us, both without the boundary before the first kernel.
struct SequenceTimes {
  double apart = 0;     // launches of a graph
  double together = 0;  // one launch
};

// A phase among others. `after`: the phases for which it waits.
struct OrderedPhase {
  const PhaseDraft* draft = nullptr;
  std::vector<size_t> after;
  SequenceDesc::Ahead ahead = SequenceDesc::Ahead::kNone;
};

// Predicts the time of a sequence of which an SM has `resident` blocks.
double us_together(const std::vector<OrderedPhase>& phases, int resident, const GpuTarget& target);
// True if the difference is larger than the error of the predictions.
bool pays(const SequenceTimes& times, const GpuTarget& target);

}  // namespace heddle::schedule
