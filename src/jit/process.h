#pragma once

#include <string>
#include <vector>

namespace heddle::jit {

struct ProcessResult {
  int status = 0;      // exit status; 128 + signal when it was killed
  std::string output;  // stdout and stderr together, at most 64 KiB
};

// Runs a program without a shell and waits for it. `scratch` is the path of a file that receives its output. Throws
// kFile if the program cannot be started, or kOutOfMemory if that is for lack of processes or memory. If the work is
// cancelled, kills the program and throws Cancelled.
ProcessResult run_process(const std::vector<std::string>& arguments, const std::string& scratch);

// Kills the programs that run_process() is waiting for; those calls then never return. For a process that is about to
// end by a signal and deletes the files that the programs were writing.
void end_processes();

}  // namespace heddle::jit
