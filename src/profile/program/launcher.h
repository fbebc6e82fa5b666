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
  std::optional<Profile> profile = {};  // of all of its processes; nothing where none could be profiled
  std::string why_not = {};             // then
  int status = 0;                       // what a shell has in $?: that of the program, 128 and the signal that ended it
};

// Runs a program with libheddle_profile.so in each Python that it starts, and in whatever uses CUDA, and returns when
// it has ended. Its standard streams are those of this process. Throws kFile where the program or the library cannot be
// found, kOutOfMemory where the system starts no process. Once the program has run its status is returned, whatever
// becomes of its profiles.
LaunchedProgram profile_program(const LaunchOptions& options);

}  // namespace heddle::profile
