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
  size_t uses = 0;       // the number of the model's kernels that have this problem
  tune::Record record;   // only valid if `reached` and `failure` is empty
  double gain = 1;       // the time (or energy, TuneOptions::by_energy) of the cost model's choice / of the winner
  bool known = false;    // `record` is from the database and was not measured now
  bool reached = false;  // false: the time budget ran out before this problem
  std::string failure;   // the reason why nothing was measured
};

struct TuneOptions {
  double budget_seconds = 60;  // approximate; the heaviest problems are measured first
  int most = 12;               // the maximum number of candidates per problem
  bool again = false;          // also measure problems that the database already contains
  bool by_energy = false;      // rank candidates by the energy of a run instead of its time
  // Called after each problem. `done` of `count` problems are finished; `fraction` is the finished fraction of the
  // work.
  std::function<void(const TunedProblem& problem, size_t done, size_t count, double fraction)> progress;
};

struct TuneReport {
  std::string model, target;
  std::vector<PortInfo> inputs;        // with the shapes that were used
  std::vector<TunedProblem> problems;  // heaviest first
  std::string database, note;          // the database's path; a problem with the database, or ""
  bool by_energy = false;
  double seconds = 0;
  double waiting = 0;  // Contention::waiting() while candidates were timed on a CPU
  int threads = 1;
};

// Measures the configurations of a model's contractions and stores the fastest ones for later compilations. Throws the
// errors of compilation, and kDevice if candidates cannot be ranked by energy. A record of the database that was ranked
// otherwise than requested is measured again and replaced. If a problem cannot be measured, TunedProblem::failure gives
// the reason.
TuneReport tune_model(const std::string& path, const CompileOptions& options, const TuneOptions& tuning);

}  // namespace heddle::driver
