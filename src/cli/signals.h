#pragma once

namespace heddle::cli {

// Lets SIGINT, SIGTERM and SIGHUP end the compilers that run and remove temporary folders before they end the process,
// with the signal as its status. Call it before the process has threads. Throws kOutOfMemory if the system cannot start
// a thread.
void clean_up_on_signals();

// From now on they are the business of this child: SIGINT, which a terminal sends to both, does nothing here, others
// are passed on. 0: ends that.
void leave_signals_to(int process);

}  // namespace heddle::cli
