#pragma once

namespace heddle::cli {

// Makes SIGINT, SIGTERM and SIGHUP stop running compilers and remove temporary folders before they end the process with
// the signal as its status. Call it before the process has threads. Throws kOutOfMemory if the system cannot start a
// thread.
void clean_up_on_signals();

// Leaves these signals to a child process from now on. SIGINT, which a terminal sends to both, is ignored here; the
// others are passed on. 0 ends that.
void leave_signals_to(int process);

}  // namespace heddle::cli
