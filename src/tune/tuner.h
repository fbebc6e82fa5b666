#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "target/energy/energy_counter.h"
#include "tune/database.h"

namespace heddle::tune {

// The candidates for one problem on a device, ready to run. The candidate with the best prediction comes first.
class Trial {
 public:
  virtual ~Trial() = default;
  virtual size_t size() const = 0;
  // Runs a candidate once, with cold caches as in a model. Returns its time in seconds. Throws Error on failure.
  virtual double run(size_t candidate) = 0;
  // Call after run(). Returns "" if the candidate's results agree with those of the first candidate that was checked;
  // otherwise a description of the difference.
  virtual std::string check(size_t candidate) = 0;
  // Call after run(). Runs a candidate `runs` times in a row, with warm caches, and waits for the last run.
  virtual void repeat(size_t candidate, int64_t runs) = 0;
};

// Candidates for the kernels of a graph's groups.
class GroupTrial : public Trial {
 public:
  // The contents of a value that the kernels read or write, as of the last candidate that was checked.
  virtual std::vector<double> values(uint32_t value) const = 0;
};

struct TunerOptions {
  int rounds = 11;            // runs of a candidate that is not dropped
  double slower = 1.15;       // drop a candidate if its fastest run takes this many times the leader's median
  double margin = 0.02;       // keep the first candidate if the winner's relative advantage is smaller
  double budget_seconds = 5;  // no further round begins after this time, but each candidate runs at least twice
  // If set, the candidates that are not clearly slower are ranked by the energy of a run, measured twice for
  // `energy_seconds` each.
  EnergyCounter* energy = nullptr;
  double energy_seconds = 0.5;
};

struct CandidateTimes {
  std::vector<double> seconds;  // the time of each run, in order
  double median = 0;
  double joules = 0;     // of a run; 0: not measured
  bool dropped = false;  // found clearly slower before the last round
  std::string failure;   // why the candidate is excluded: it failed, or its results differ
};

struct TunerResult {
  std::vector<CandidateTimes> times;  // one entry per candidate
  size_t winner = 0;
  // First candidate's time / winner's time: the median of this ratio over all rounds. If TunerOptions::energy is set,
  // first candidate's energy / winner's energy.
  double gain = 1;
  double spread = 0;  // of the winner's times: (90th - 10th percentile) / median
  bool ok = false;    // false: no candidate could run
};

// Runs the candidates alternately, so that a disturbance of the machine affects all of them alike. Drops clearly slower
// candidates, but never the first candidate, since the gain is measured against it. If TunerOptions::energy is set, the
// winner is the candidate that takes the least energy.
TunerResult choose_best(Trial& trial, const TunerOptions& options);

// Creates the record that the database stores. `winner` and `pick` are the configurations of the winner and of the
// first candidate, as text.
Record record_of(const TunerResult& result, std::string winner, std::string pick);

double median_of(std::vector<double> values);  // 0 if empty
double percentile_of(std::vector<double> values, double share);

}  // namespace heddle::tune
