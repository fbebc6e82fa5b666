#pragma once

#include <string>
#include <vector>

namespace heddle::jit {

struct ProcessResult {
  int status = 0;      // exit status; 128 + signal when it was killed
  std::string output;  // stdout and stderr together, at most 64 KiB
};

// Runs a program without a shell and waits for it. `scratch` is a path for a file that takes its output. Throws kFile
// if the program cannot be started. If the work is cancelled, kills the program and throws Cancelled.
ProcessResult run_process(const std::vector<std::string>& arguments, const std::string& scratch);

// Ends the programs that run_process() waits for, which then waits for ever: for a process that is about to end by a
// signal and removes what they were writing.
void end_processes();

}  // namespace heddle::jit
