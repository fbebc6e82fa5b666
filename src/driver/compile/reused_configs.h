#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "schedule/config/config_source.h"

namespace heddle::driver {

// The names (schedule::name_of) of the configurations of kernels that a model has, by the problems that they may run
// (Problem::any_rows).
using KnownChoices = std::map<std::string, std::set<std::string>>;

// Prefers configurations whose kernels exist over slightly faster ones, so that another shape of a model needs no
// compiler. `inner`, which may answer from measurements, is asked first.
class ReusedConfigs : public schedule::ConfigSource {
 public:
  // How much slower than the pick a known configuration may be, by the cost model. This is about the model's error.
  static constexpr double kMostSlower = 1.1;
  ReusedConfigs(schedule::ConfigSource& inner, const KnownChoices& known, double most_slower = kMostSlower)
      : inner_(inner), known_(known), most_slower_(most_slower) {}
  std::optional<schedule::Config> choose(const schedule::Problem& problem, const Candidates& candidates) override;
  bool for_any_extents() const override { return inner_.for_any_extents(); }

  // All choices, whether known before or not.
  KnownChoices take_chosen() { return std::move(chosen_); }

 private:
  schedule::ConfigSource& inner_;
  const KnownChoices& known_;
  const double most_slower_;
  KnownChoices chosen_;
};

}  // namespace heddle::driver
