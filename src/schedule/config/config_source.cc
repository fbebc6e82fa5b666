#include "schedule/config/config_source.h"

#include "base/check.h"

namespace heddle::schedule {

Config choose_config(ConfigSource* source, const std::string& problem, const ConfigSource::Candidates& candidates) {
  if (source != nullptr) {
    if (std::optional<Config> chosen = source->choose(problem, candidates)) return std::move(*chosen);
  }
  std::vector<Config> list = candidates();
  HEDDLE_CHECK(!list.empty(), "{}: no configuration", problem);
  return std::move(list.front());
}

std::string name_of(const Config& config) {
  std::string text = fmt::format("{} {}x{}x{}", config.algorithm, config.tile_m, config.tile_n, config.tile_k);
  if (config.micro_m > 0) text += fmt::format(" micro {}x{}", config.micro_m, config.micro_n);
  if (config.lanes > 0) text += fmt::format(" lanes {}", config.lanes);
  if (config.stages > 0) text += fmt::format(" s{}", config.stages);
  if (config.cluster_m * config.cluster_n > 1) text += fmt::format(" c{}x{}", config.cluster_m, config.cluster_n);
  if (config.splits > 1) text += fmt::format(" k/{}", config.splits);
  if (config.ping_pong) text += " ping-pong";
  if (config.swapped) text += " swapped";
  if (config.stream) text += " stream-K";
  if (config.parts > 0) text += fmt::format(" parts {}", config.parts);
  return text;
}

}  // namespace heddle::schedule
