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
  bool operators = false;                         // those of PyTorch, by NVTX
  std::function<void(int process)> started = {};  // is told of the child
};

struct LaunchedProgram {
  std::optional<Profile> profile = {};  // of all of its processes; empty if none could be profiled
  std::string why_not = {};             // if there is no profile
  int status = 0;                       // as $? in a shell: the exit status, or 128 plus the fatal signal
};

// Runs a program with libheddle_profile.so in each Python that it starts, and in whatever uses CUDA, and returns when
// it has ended. Its standard streams are those of this process. Throws kFile where the program or the library cannot be
// found, kOutOfMemory if the system cannot start a process. Once the program has run, its status is returned, even if
// profiling fails.
LaunchedProgram profile_program(const LaunchOptions& options);

}  // namespace heddle::profile
