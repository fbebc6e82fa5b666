#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "schedule/config/config_source.h"
#include "target/target.h"
#include "tune/database.h"
#include "tune/place.h"

namespace heddle::driver {

// The tuning data that a plan depends on: the problems that the schedule looked up, and the answers of the database.
struct TuningChoices {
  std::vector<std::string> problems;  // sorted
  std::string winners;                // one line for each problem that has a record in the database

  // The problems as the payload of a cache entry.
  std::string text() const;
};

// Returns TuningChoices::winners according to the current database, for the problems in `text` (TuningChoices::text()).
std::string current_winners(std::string_view text, const Target& target, bool tuned);

// Chooses configurations for the schedule from the tuner's database, and records which problems were looked up.
class TunedConfigs : public schedule::ConfigSource {
 public:
  TunedConfigs(const Target& target, bool tuned, bool for_any_extents = false);
  std::optional<schedule::Config> choose(const schedule::Problem& problem, const Candidates& candidates) override;

  bool for_any_extents() const override { return for_any_extents_; }

  TuningChoices choices() const;
  size_t used() const { return used_.size(); }  // the number of problems with a measured configuration

 private:
  bool tuned_, for_any_extents_;
  tune::Place place_;
  std::map<std::string, std::optional<tune::Record>> asked_;
  std::set<std::string> used_;
};

}  // namespace heddle::driver
