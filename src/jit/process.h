#pragma once

#include <string>
#include <vector>

namespace heddle::jit {

struct ProcessResult {
  int status = 0;      // exit status, or 128 + signal if a signal killed the program
  std::string output;  // stdout and stderr together, at most 64 KiB
};

// Runs a program without a shell and waits for it. `scratch` is the path of a file that receives the program's output.
// Throws kOutOfMemory if the program cannot be started for lack of processes or memory, and kFile if it cannot be
// started for another reason. If the work is cancelled, kills the program and throws Cancelled.
ProcessResult run_process(const std::vector<std::string>& arguments, const std::string& scratch);

// Kills the programs that run_process() is waiting for. The waiting calls of run_process() then never return. Intended
// for a process that is about to end by a signal and deletes the files that the programs were writing.
void end_processes();

}  // namespace heddle::jit
