#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "schedule/kernel_desc.h"

namespace heddle::schedule {

// What a schedule asks about.
struct Problem {
  // The canonical text of everything that the speed of a configuration depends on apart from the device: types, sizes,
  // where operands lie.
  std::string text;
  // The same without the extents that kernels are told when they are launched: problems that agree in it mostly have one
  // kernel for a choice. "": a kernel is for the extents of one problem.
  std::string any_rows = {};
};

// Where a contraction may run in several configurations, its schedule asks here before it takes the cost model's. The
// driver installs an implementation that reads the tuner's database; nothing in schedule or codegen knows of it.
class ConfigSource {
 public:
  // The configurations of a problem, the cost model's pick first, the others in the order in which they are worth
  // trying. Made only when they are needed.
  using Candidates = std::function<std::vector<Config>()>;

  virtual ~ConfigSource() = default;

  // One of the candidates, with a reason of its own, or nullopt for the model's pick.
  virtual std::optional<Config> choose(const Problem& problem, const Candidates& candidates) = 0;
  // Whether kernels are to serve other extents, too: of few kinds rather than the best for each.
  virtual bool for_any_extents() const { return false; }
};

// Asks `source` (which may be null); the answer, else the model's pick.
Config choose_config(ConfigSource* source, const Problem& problem, const ConfigSource::Candidates& candidates);

}  // namespace heddle::schedule
