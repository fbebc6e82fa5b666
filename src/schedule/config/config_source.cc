#include "schedule/config/config_source.h"

#include "base/check.h"

namespace heddle::schedule {

Config choose_config(ConfigSource* source, const Problem& problem, const ConfigSource::Candidates& candidates) {
  if (source != nullptr) {
    if (std::optional<Config> chosen = source->choose(problem, candidates)) return std::move(*chosen);
  }
  std::vector<Config> list = candidates();
  HEDDLE_CHECK(!list.empty(), "{}: no configuration", problem.text);
  return std::move(list.front());
}

}  // namespace heddle::schedule
