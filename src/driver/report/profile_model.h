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

// Runs a model that was compiled with its kernels and says which of its nodes take the time, below the modules that
// their names tell of. The time of a kernel for several nodes is divided among them by samples (inside/), for which
// runs of the same length follow, or by an estimate (node_work.h); the names of those begin with "~". Values are those
// of one run, on average, and sum to its time; what lies between steps is the root's.
profile::Profile profile_model(const CompiledModel& model, const Target& target, const ProfileOptions& options);

}  // namespace heddle::driver
