#include "tune/tuner.h"

#include <algorithm>
#include <chrono>

#include "heddle/error.h"

namespace heddle::tune {
namespace {

using Clock = std::chrono::steady_clock;

class Contest {
 public:
  Contest(Trial& trial, const TunerOptions& options) : trial_(trial), options_(options) {
    result_.times.resize(trial.size());
  }

  TunerResult run() {
    const Clock::time_point start = Clock::now();
    for (int round = 0; round < options_.rounds; ++round) {
      if (round >= 2 && std::chrono::duration<double>(Clock::now() - start).count() > options_.budget_seconds) break;
      for (size_t i = 0; i < trial_.size(); ++i) {
        if (is_in(i)) run_once(i, round == 0);
      }
      drop_slow();
      if (round >= 2 && count_in() <= 1) break;
    }
    if (options_.energy != nullptr) measure_energies();
    choose();
    return std::move(result_);
  }

 private:
  bool is_in(size_t i) const { return !result_.times[i].dropped && result_.times[i].failure.empty(); }
  size_t count_in() const {
    size_t count = 0;
    for (size_t i = 0; i < result_.times.size(); ++i) count += is_in(i) ? 1 : 0;
    return count;
  }

  // The first run of each is checked and does not count: it loads code and touches its scratch for the first time.
  void run_once(size_t i, bool first) {
    CandidateTimes& times = result_.times[i];
    try {
      const double seconds = trial_.run(i);
      if (first) {
        times.failure = trial_.check(i);
      } else {
        times.seconds.push_back(seconds);
        times.median = median_of(times.seconds);
      }
    } catch (const Error& error) {
      times.failure = error.what();
    }
  }

  void drop_slow() {
    double best = 0;
    for (size_t i = 0; i < result_.times.size(); ++i) {
      const CandidateTimes& times = result_.times[i];
      if (is_in(i) && !times.seconds.empty() && (best == 0 || times.median < best)) best = times.median;
    }
    // Its fastest run against a median: a disturbed run drops nobody.
    for (size_t i = 1; i < result_.times.size(); ++i) {
      CandidateTimes& times = result_.times[i];
      if (!is_in(i) || times.seconds.size() < 3) continue;
      times.dropped = *std::min_element(times.seconds.begin(), times.seconds.end()) > options_.slower * best;
    }
  }

  // In turns, since a GPU takes more power as it grows warm.
  void measure_energies() {
    constexpr int kTurns = 2;
    for (int turn = 0; turn < kTurns; ++turn) {
      for (size_t i = 0; i < result_.times.size(); ++i) {
        if (is_in(i) && !result_.times[i].seconds.empty()) add_energy(i, kTurns);
      }
    }
  }

  void add_energy(size_t i, int turns) {
    CandidateTimes& times = result_.times[i];
    try {
      const EnergyFigure figure =
          measure_energy(*options_.energy, options_.energy_seconds, [&](int64_t runs) { trial_.repeat(i, runs); });
      times.joules += figure.joules / turns;
      times.failure = figure.why_not;
    } catch (const Error& error) {
      times.failure = error.what();
    }
  }

  double cost(size_t i) const { return options_.energy != nullptr ? result_.times[i].joules : result_.times[i].median; }

  void choose() {
    bool found = false;
    for (size_t i = 0; i < result_.times.size(); ++i) {
      if (!is_in(i) || result_.times[i].seconds.empty()) continue;
      if (!found || cost(i) < cost(result_.winner)) result_.winner = i;
      found = true;
    }
    result_.ok = found;
    if (!found) return;
    const CandidateTimes& first = result_.times[0];
    if (result_.winner != 0 && first.failure.empty() && !first.seconds.empty()) {
      result_.gain = gain_of(result_.winner);
      if (result_.gain < 1 + options_.margin) result_.winner = 0, result_.gain = 1;
    }
    const CandidateTimes& won = result_.times[result_.winner];
    result_.spread = (percentile_of(won.seconds, 0.9) - percentile_of(won.seconds, 0.1)) / won.median;
  }

  double gain_of(size_t i) const {
    if (options_.energy != nullptr) return cost(0) / cost(i);
    const auto &first = result_.times[0].seconds, &other = result_.times[i].seconds;
    std::vector<double> ratios;
    for (size_t k = 0; k < std::min(first.size(), other.size()); ++k) ratios.push_back(first[k] / other[k]);
    return median_of(std::move(ratios));
  }

  Trial& trial_;
  const TunerOptions& options_;
  TunerResult result_;
};

}  // namespace

Record record_of(const TunerResult& result, std::string winner, std::string pick) {
  const CandidateTimes& won = result.times[result.winner];
  Record record;
  record.winner = std::move(winner), record.pick = std::move(pick);
  record.winner_us = won.median * 1e6;
  record.winner_uj = won.joules * 1e6;
  if (record.by_energy()) {
    record.pick_us = result.gain == 1 ? record.winner_us : result.times[0].median * 1e6;
    record.pick_uj = record.winner_uj * result.gain;
  } else {
    record.pick_us = record.winner_us * result.gain;
  }
  record.spread = result.spread;
  record.candidates = static_cast<int64_t>(result.times.size());
  record.samples = static_cast<int64_t>(won.seconds.size());
  return record;
}

double median_of(std::vector<double> values) {
  return percentile_of(std::move(values), 0.5);
}

double percentile_of(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

TunerResult choose_best(Trial& trial, const TunerOptions& options) {
  return Contest(trial, options).run();
}

}  // namespace heddle::tune
