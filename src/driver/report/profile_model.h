#pragma once

#include <map>
#include <string>

#include "driver/compile/compile.h"
#include "profile/profile.h"

namespace heddle::driver {

struct ProfileOptions {
  double seconds = 1;  // the duration of timed runs
  int threads = 1;     // CPU threads
  int device = 0;      // the number of the GPU
  uint64_t seed = 0;   // seed of the random inputs, for inputs that are not given
  std::map<std::string, Tensor> inputs = {};
};

// Runs a compiled model and reports the time of each node. Nodes are grouped into the modules that their names reveal.
// The time of a kernel that computes several nodes is divided among them. The division comes from samples (inside/),
// which take further runs of the same length, or from an estimate (node_work.h). Names of estimated nodes begin with
// "~".
//
// Values are averages per run and sum to the time of a run. Time between steps is attributed to the root.
profile::Profile profile_model(const CompiledModel& model, const Target& target, const ProfileOptions& options);

}  // namespace heddle::driver
