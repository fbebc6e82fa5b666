#pragma once

namespace heddle::cli {

// Lets SIGINT, SIGTERM and SIGHUP end the compilers that run and remove temporary folders before they end the process,
// with the signal as its status. Before the process has threads.
void clean_up_on_signals();

}  // namespace heddle::cli
