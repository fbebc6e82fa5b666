#include "driver/compile/tuned_configs.h"

#include "base/check.h"
#include "base/file/file.h"

namespace heddle::driver {
namespace {

// "0.412 ms", "13.1 us"
std::string time_text(double us) {
  return us >= 1000 ? fmt::format("{:.3f} ms", us * 1e-3) : fmt::format("{:.1f} us", us);
}

std::string reason_of(const tune::Record& record, const std::string& why) {
  const auto cost_text = [&](double us, double uj) {
    return record.by_energy() ? fmt::format("{}, {:.4g} mJ", time_text(us), uj * 1e-3) : time_text(us);
  };
  const std::string statistics = fmt::format("median of {} runs, spread {:.0f}%, {} candidates", record.samples,
                                             100 * record.spread, record.candidates);
  if (record.winner == record.pick) {
    return fmt::format("tuned: the model's pick is the best at {} ({}); {}",
                       cost_text(record.winner_us, record.winner_uj), statistics, why);
  }
  return fmt::format("tuned: {} where the model's pick, {}, takes {} ({}); {}",
                     cost_text(record.winner_us, record.winner_uj), record.pick,
                     cost_text(record.pick_us, record.pick_uj), statistics, why);
}

std::string winner_line(const std::string& problem, const tune::Record& record) {
  return problem + " -> " + record.winner + "\n";
}

}  // namespace

std::string TuningChoices::text() const {
  return fmt::format("{}", fmt::join(problems, "\n"));
}

std::string current_winners(std::string_view text, const Target& target, bool tuned) {
  tune::Database& database = tune::user_database();
  if (!tuned || text.empty() || !file_exists(database.path())) return "";
  const tune::Place place = tune::place_of(target);
  std::string winners;
  while (!text.empty()) {
    const std::string problem(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(text.size(), problem.size() + 1));
    if (const auto record = database.find(place, problem)) winners += winner_line(problem, *record);
  }
  return winners;
}

TunedConfigs::TunedConfigs(const Target& target, bool tuned, bool for_any_extents)
    : tuned_(tuned && file_exists(tune::user_database().path())), for_any_extents_(for_any_extents) {
  if (tuned_) place_ = tune::place_of(target);
}

std::optional<schedule::Config> TunedConfigs::choose(const schedule::Problem& problem, const Candidates& candidates) {
  const auto [at, is_new] = asked_.try_emplace(problem.text);
  if (is_new && tuned_) at->second = tune::user_database().find(place_, problem.text);
  if (!at->second) return std::nullopt;
  const std::optional<schedule::Choice> winner = schedule::parse_choice(at->second->winner);
  for (schedule::Config& config : candidates()) {
    if (config.choice != winner) continue;
    config.reason = reason_of(*at->second, config.reason);
    used_.insert(problem.text);
    return std::move(config);
  }
  return std::nullopt;
}

TuningChoices TunedConfigs::choices() const {
  TuningChoices choices;
  for (const auto& [problem, record] : asked_) {
    choices.problems.push_back(problem);
    if (record) choices.winners += winner_line(problem, *record);
  }
  return choices;
}

}  // namespace heddle::driver
