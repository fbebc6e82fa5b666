#pragma once

namespace heddle::cli {

// Installs clean-up for SIGINT, SIGTERM and SIGHUP. When one arrives, running compilers are stopped and temporary
// folders are removed. The process then ends with the signal as its status. Must be called before the process starts
// threads. Throws kOutOfMemory if the system cannot start a thread.
void clean_up_on_signals();

// Leaves SIGINT, SIGTERM and SIGHUP to the child process with the id `process`. SIGINT is ignored here, since a
// terminal sends it to both processes. The other two signals are forwarded to the child. 0 restores the clean-up.
void leave_signals_to(int process);

}  // namespace heddle::cli
