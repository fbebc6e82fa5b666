#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "schedule/kernel_desc.h"

namespace heddle::schedule {

// The problem for which a schedule asks for a configuration.
struct Problem {
  // Canonical text of everything, besides the device, that determines the speed of a configuration: types, sizes,
  // operand layouts.
  std::string text;
  // `text` without the extents that are passed at launch. Problems with equal `any_rows` mostly share one kernel per
  // configuration. "" if kernels are specific to the extents of one problem.
  std::string any_rows = {};
};

// If several configurations are possible, a schedule asks its ConfigSource before it uses the cost model's choice. The
// driver installs an implementation that reads the tuner's database; schedule and codegen do not depend on it.
class ConfigSource {
 public:
  // Returns the configurations of a problem: first the cost model's choice, then the others in the order in which to
  // try them. Called only if they are needed.
  using Candidates = std::function<std::vector<Config>()>;

  virtual ~ConfigSource() = default;

  // Returns one of the candidates, or nullopt to use the cost model's choice. May change Config::reason.
  virtual std::optional<Config> choose(const Problem& problem, const Candidates& candidates) = 0;
  // True if kernels should also support other extents. A few kinds of kernels are then preferred to the best kernel for
  // each problem.
  virtual bool for_any_extents() const { return false; }
};

// Returns the choice of `source` (which may be null) if it makes one, else the cost model's choice.
Config choose_config(ConfigSource* source, const Problem& problem, const ConfigSource::Candidates& candidates);

}  // namespace heddle::schedule
