#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "schedule/config/config_source.h"

namespace heddle::driver {

// The configurations for which a model already has kernels. Maps a problem text that covers any number of rows
// (Problem::any_rows) to the names (schedule::name_of) of its configurations.
using KnownChoices = std::map<std::string, std::set<std::string>>;

// Prefers configurations whose kernels already exist over slightly faster ones, so that another shape of a model needs
// no compilation. `inner` is asked first, since it may know measured winners. If it returns a configuration, that one
// is used.
class ReusedConfigs : public schedule::ConfigSource {
 public:
  // The maximum ratio of the predicted time of a known configuration to that of the fastest one. The value is about the
  // error of the cost model.
  static constexpr double kMostSlower = 1.1;
  ReusedConfigs(schedule::ConfigSource& inner, const KnownChoices& known, double most_slower = kMostSlower)
      : inner_(inner), known_(known), most_slower_(most_slower) {}
  std::optional<schedule::Config> choose(const schedule::Problem& problem, const Candidates& candidates) override;
  bool for_any_extents() const override { return inner_.for_any_extents(); }

  // Returns and clears all configurations chosen so far, including those that were already known.
  KnownChoices take_chosen() { return std::move(chosen_); }

 private:
  schedule::ConfigSource& inner_;
  const KnownChoices& known_;
  const double most_slower_;
  KnownChoices chosen_;
};

}  // namespace heddle::driver
