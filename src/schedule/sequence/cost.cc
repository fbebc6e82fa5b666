#include "schedule/sequence/cost.h"

#include <algorithm>

namespace heddle::schedule {

double us_together(const std::vector<OrderedPhase>& phases, int64_t blocks, const CudaTarget& target) {
  constexpr double kTakeUs = 0.7;  // a block takes a task from a counter in the L2
  std::vector<double> end(phases.size());
  double last = 0, busy = 0;  // busy: the time of all blocks, divided by their number
  for (size_t p = 0; p < phases.size(); ++p) {
    const PhaseFacts& facts = phases[p].draft->facts;
    double begin = 0;
    for (const size_t q : phases[p].after) begin = std::max(begin, end[q] + target.model.chip.grid_wait_us);
    const double ahead = phases[p].loads_ahead ? std::min(facts.ahead_us, begin) : 0;
    const double takes = std::max(facts.us - ahead, 0.0) + kTakeUs * static_cast<double>((facts.tasks - 1) / blocks);
    end[p] = begin + takes;
    last = std::max(last, end[p]);
    busy += takes * std::min(1.0, static_cast<double>(facts.tasks) / static_cast<double>(blocks));
  }
  return kTakeUs + std::max(last, busy);
}

bool pays(const SequenceTimes& times) {
  constexpr double kLeastUs = 0.3, kLeastShare = 0.03;
  return times.apart - times.together > std::max(kLeastUs, kLeastShare * times.apart);
}

}  // namespace heddle::schedule
