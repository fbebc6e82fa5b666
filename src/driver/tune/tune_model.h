#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/model.h"
#include "tune/database.h"

namespace heddle::driver {

struct TunedProblem {
  std::string problem;
  std::string label;     // of the first kernel with this problem: "gemm 128x768x3072 + add, erf"
  size_t uses = 0;       // kernels of the model
  tune::Record record;   // meaningless if it failed or was not reached
  double gain = 1;       // time of the cost model's pick over the winner's
  bool known = false;    // from the database instead of measured now
  bool reached = false;  // false: the budget ended first
  std::string failure;   // why nothing was measured
};

struct TuneOptions {
  double budget_seconds = 60;  // measuring stops about then; the heaviest problems come first
  int most = 12;               // candidates of one problem
  bool again = false;          // measure problems again that the database has
  // Called after each problem; `fraction` of the work is done.
  std::function<void(const TunedProblem& problem, size_t done, size_t count, double fraction)> progress;
};

struct TuneReport {
  std::string model, target;
  std::vector<PortInfo> inputs;        // with the shapes that were used
  std::vector<TunedProblem> problems;  // heaviest first
  std::string database, note;          // its path; a problem with it, or ""
  double seconds = 0;
  double waiting = 0;  // Contention::waiting() while candidates were timed on a CPU
  int threads = 1;
};

// Measures the configurations of a model's contractions and stores the winners for later compilations. Throws what
// compiling throws. A problem that cannot be measured is reported in TunedProblem::failure.
TuneReport tune_model(const std::string& path, const CompileOptions& options, const TuneOptions& tuning);

}  // namespace heddle::driver
