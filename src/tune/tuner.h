#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tune/database.h"

namespace heddle::tune {

// The candidates of one problem on a device, ready to run, best prediction first.
class Trial {
 public:
  virtual ~Trial() = default;
  virtual size_t size() const = 0;
  // Runs a candidate once, with cold caches as in a model, and returns the seconds. Throws Error on failure.
  virtual double run(size_t candidate) = 0;
  // After a run: describes how its results differ from those of the first candidate that was checked; "" if they agree.
  virtual std::string check(size_t candidate) = 0;
};

// Candidates for the kernels of groups of a graph.
class GroupTrial : public Trial {
 public:
  // The contents of a value that the kernels read or write, as left by the last candidate that was checked.
  virtual std::vector<double> values(uint32_t value) const = 0;
};

struct TunerOptions {
  int rounds = 11;            // runs of a candidate that stays to the end
  double slower = 1.15;       // a candidate whose fastest run takes this many times the leader's median is dropped
  double margin = 0.02;       // below this advantage of the winner, the first candidate is kept
  double budget_seconds = 5;  // no further round begins after this, but each candidate runs twice
};

struct CandidateTimes {
  std::vector<double> seconds;  // of its runs, in order
  double median = 0;
  bool dropped = false;  // clearly slower before the last round
  std::string failure;   // why it is excluded: it failed, or its results differ
};

struct TunerResult {
  std::vector<CandidateTimes> times;  // by candidate
  size_t winner = 0;
  double gain = 1;    // the first candidate's time over the winner's: median of the ratios of runs side by side
  double spread = 0;  // of the winner's runs: (90th - 10th percentile) / median
  bool ok = false;    // false: no candidate ran
};

// Runs candidates in turns, so that a disturbance of the machine affects all of them alike, and drops clearly slower
// ones. The first candidate is never dropped, since the gain is measured against it.
TunerResult choose_fastest(Trial& trial, const TunerOptions& options);

// The record that the database stores. `winner` and `pick` name the configurations of the winner and of the first
// candidate.
Record record_of(const TunerResult& result, std::string winner, std::string pick);

double median_of(std::vector<double> values);  // 0 if empty
double percentile_of(std::vector<double> values, double share);

}  // namespace heddle::tune
