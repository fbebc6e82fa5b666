#pragma once

#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"

namespace heddle {

class ThreadPool;

// The remedy to print if the system cannot start a thread or a process.
inline constexpr const char* kMoreProcesses =
    "Raise the limit on processes and threads (ulimit -u, pids.max of the control group), or end some";

// Starts a thread that does `work`. Throws kOutOfMemory, naming `what`, if the system cannot start one.
template <typename Work>
std::thread start_thread(const char* what, Work&& work) {
  try {
    return std::thread(std::forward<Work>(work));
  } catch (const std::system_error& error) {
    fail(ErrorCode::kOutOfMemory, what, fmt::format("the system starts no thread: {}", error.what()), kMoreProcesses);
  }
}

// A pool for work whose number of threads the user did not choose: if the system starts fewer threads, the pool has
// fewer or none, and a warning says so.
std::unique_ptr<ThreadPool> pool_of_up_to(int threads);

}  // namespace heddle
