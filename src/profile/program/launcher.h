#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "profile/profile.h"

namespace heddle::profile {

struct LaunchOptions {
  std::vector<std::string> command;  // the program, found through $PATH, and its arguments
  double rate = 100;                 // samples per second of CPU time
  bool gpu = true, all_frames = false;
  bool operators = false;                         // records PyTorch operators, by NVTX
  std::function<void(int process)> started = {};  // is called with the child's process id
};

struct LaunchedProgram {
  std::optional<Profile> profile = {};  // of all processes of the program; empty if no process could be profiled
  std::string why_not = {};             // the reason why there is no profile
  int status = 0;                       // like $? in a shell: the exit status, or 128 + the fatal signal
};

// Runs a program and waits for it to end. libheddle_profile.so is loaded into every Python process that the program
// starts and into every process that uses CUDA. The program inherits the standard streams of this process. Throws kFile
// if the program or the library cannot be found, and kOutOfMemory if the system cannot start a process. Once the
// program has run, its exit status is returned even if profiling failed.
LaunchedProgram profile_program(const LaunchOptions& options);

}  // namespace heddle::profile
