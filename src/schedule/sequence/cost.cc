#include "schedule/sequence/cost.h"

#include <algorithm>

#include "base/divide.h"

namespace heddle::schedule {

using Ahead = SequenceDesc::Ahead;

double us_together(const std::vector<OrderedPhase>& phases, int resident, const GpuTarget& target) {
  const auto& chip = target.model.chip;
  const int64_t blocks = int64_t{target.sms} * resident;
  const double take = chip.task_us;
  std::vector<double> end(phases.size());
  double last = 0, busy = 0;  // busy: the time of all blocks, divided by their number
  for (size_t p = 0; p < phases.size(); ++p) {
    const PhaseFacts& facts = phases[p].draft->facts;
    double begin = 0;
    for (const size_t q : phases[p].after) begin = std::max(begin, end[q] + chip.grid_wait_us);
    const double requested = phases[p].ahead == Ahead::kAtStart    ? take + begin
                             : phases[p].ahead == Ahead::kWithTask ? std::min(begin, chip.grid_wait_us)
                                                                   : 0;
    // Fewer blocks of an SM have fewer loads in flight.
    const int64_t turns = ceil_div(int64_t{facts.at_once}, int64_t{resident});
    const double takes = (facts.us - std::min({facts.us, facts.ahead_us, requested})) * static_cast<double>(turns) +
                         take * static_cast<double>((facts.tasks - 1) / blocks);
    end[p] = begin + takes;
    last = std::max(last, end[p]);
    busy += takes * std::min(1.0, static_cast<double>(facts.tasks) / static_cast<double>(blocks));
  }
  return take + std::max(last, busy);
}

bool pays(const SequenceTimes& times, const GpuTarget& target) {
  constexpr double kLeastShare = 0.03;
  const double least = std::max(target.model.chip.graph_boundary_us / 2, kLeastShare * times.apart);
  return times.apart - times.together > least;
}

}  // namespace heddle::schedule
