#pragma once

#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"

namespace heddle {

class ThreadPool;

// The remedy in the error message if the system cannot start a thread or a process.
inline constexpr const char* kMoreProcesses =
    "Raise the limit on processes and threads (ulimit -u, pids.max of the control group), or end some";

// Starts a thread that runs `work`. Throws kOutOfMemory if the system cannot start a thread; the message names `what`.
template <typename Work>
std::thread start_thread(const char* what, Work&& work) {
  try {
    return std::thread(std::forward<Work>(work));
  } catch (const std::system_error& error) {
    fail(ErrorCode::kOutOfMemory, what, fmt::format("the system starts no thread: {}", error.what()), kMoreProcesses);
  }
}

// Creates a pool for work whose number of threads the user did not choose. If the system cannot start `threads`
// threads, the pool has fewer threads or none, and a warning says so.
std::unique_ptr<ThreadPool> pool_of_up_to(int threads);

}  // namespace heddle
