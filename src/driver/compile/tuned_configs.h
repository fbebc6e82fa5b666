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

// What a plan depends on besides its options: the problems that its schedule asked about, and the answers.
struct TuningChoices {
  std::vector<std::string> problems;  // sorted
  std::string winners;                // one line for each problem that has a record; "" for none

  // Problems as the payload of a cache entry.
  std::string text() const;
};

// The winners of the problems in `text` (TuningChoices::text()) as the database has them now.
std::string current_winners(std::string_view text, const Target& target, bool tuned);

// Answers the schedule's questions from the database and records them.
class TunedConfigs : public schedule::ConfigSource {
 public:
  TunedConfigs(const Target& target, bool tuned, bool for_any_extents = false);
  std::optional<schedule::Config> choose(const schedule::Problem& problem, const Candidates& candidates) override;

  bool for_any_extents() const override { return for_any_extents_; }

  TuningChoices choices() const;
  size_t used() const { return used_.size(); }  // problems whose configuration was measured

 private:
  bool tuned_, for_any_extents_;
  tune::Place place_;
  std::map<std::string, std::optional<tune::Record>> asked_;
  std::set<std::string> used_;
};

}  // namespace heddle::driver
