#pragma once

#include <map>
#include <string>

#include "driver/compile/compile.h"
#include "profile/profile.h"

namespace heddle::driver {

struct ProfileOptions {
  double seconds = 1;  // how long runs are timed
  int threads = 1;     // of a CPU
  int device = 0;      // which GPU
  uint64_t seed = 0;   // of inputs that are not given
  std::map<std::string, Tensor> inputs = {};
};

// Runs a model whose kernels were compiled and reports the time of its nodes, grouped into the modules that their names
// reveal. The time of a kernel for several nodes is divided among them: by samples (inside/), which take further runs
// of the same length, or by an estimate (node_work.h); the names of estimated nodes begin with "~". Values are averages
// per run and sum to the time of a run. Time between steps belongs to the root.
profile::Profile profile_model(const CompiledModel& model, const Target& target, const ProfileOptions& options);

}  // namespace heddle::driver
