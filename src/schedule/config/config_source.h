#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "schedule/kernel_desc.h"

namespace heddle::schedule {

// A query of a schedule for a configuration.
struct Problem {
  // Canonical text of everything besides the device that the speed of a configuration depends on: types, sizes, operand
  // layouts.
  std::string text;
  // The same without the extents that are passed at launch. Problems that agree in it mostly share one kernel per
  // choice. "": kernels are specific to the extents of one problem.
  std::string any_rows = {};
};

// A schedule asks here before it uses the cost model's configuration, if several are possible. The driver installs an
// implementation that reads the tuner's database; schedule and codegen do not depend on it.
class ConfigSource {
 public:
  // The configurations of a problem: the cost model's pick first, then the others in the order in which to try them.
  // Called only if they are needed.
  using Candidates = std::function<std::vector<Config>()>;

  virtual ~ConfigSource() = default;

  // Returns one of the candidates, with its own reason, or nullopt for the model's pick.
  virtual std::optional<Config> choose(const Problem& problem, const Candidates& candidates) = 0;
  // True if kernels should also support other extents: then a few kinds of kernels are preferred to the best for each
  // problem.
  virtual bool for_any_extents() const { return false; }
};

// Returns the choice of `source` (which may be null) if it makes one, else the model's pick.
Config choose_config(ConfigSource* source, const Problem& problem, const ConfigSource::Candidates& candidates);

}  // namespace heddle::schedule
