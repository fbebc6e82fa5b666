#include "driver/compile/reused_configs.h"

#include <algorithm>

#include "base/check.h"

namespace heddle::driver {
std::optional<schedule::Config> ReusedConfigs::choose(const schedule::Problem& problem, const Candidates& candidates) {
  std::optional<schedule::Config> chosen = inner_.choose(problem, candidates);
  if (problem.any_rows.empty()) return chosen;
  if (!chosen) {
    std::vector<schedule::Config> all = candidates();
    HEDDLE_CHECK(!all.empty(), "{}: no configuration", problem.text);
    const auto known = known_.find(problem.any_rows);
    const double most = most_slower_ * all.front().predicted_us;
    const auto usable = [&](const schedule::Config& config) {
      return config.predicted_us > 0 && config.predicted_us <= most &&
             known->second.contains(schedule::name_of(config));
    };
    auto pick = known == known_.end() ? all.begin() : std::find_if(all.begin(), all.end(), usable);
    if (pick == all.end()) pick = all.begin();
    if (pick != all.begin()) pick->reason += fmt::format(" ({:.1f} us for another kernel)", all.front().predicted_us);
    chosen = std::move(*pick);
  }
  chosen_[problem.any_rows].insert(schedule::name_of(*chosen));
  return chosen;
}

}  // namespace heddle::driver
