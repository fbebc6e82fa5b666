#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "profile/profile.h"

namespace heddle::profile {

struct LaunchOptions {
  std::vector<std::string> command;  // the program, found through $PATH, and its arguments
  double rate = 100;                 // samples a second of CPU time
  bool gpu = true, all_frames = false;
  bool operators = false;                         // PyTorch operators, by NVTX
  std::function<void(int process)> started = {};  // is called with the child's process id
};

struct LaunchedProgram {
  std::optional<Profile> profile = {};  // of all of its processes; empty if none could be profiled
  std::string why_not = {};             // if there is no profile
  int status = 0;                       // as $? in a shell: the exit status, or 128 plus the fatal signal
};

// Runs a program and waits for its end. libheddle_profile.so is loaded into every Python that it starts and into every
// process that uses CUDA. The program inherits the standard streams of this process. Throws kFile if the program or the
// library cannot be found, kOutOfMemory if the system cannot start a process. Once the program has run, its status is
// returned, even if profiling fails.
LaunchedProgram profile_program(const LaunchOptions& options);

}  // namespace heddle::profile
