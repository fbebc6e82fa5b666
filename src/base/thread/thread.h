#pragma once

#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"

namespace heddle {

class ThreadPool;

// What to do where the system starts no thread or no process.
inline constexpr const char* kMoreProcesses =
    "Raise the limit on processes and threads (ulimit -u, pids.max of the control group), or end some";

// A thread that does `work`. Throws kOutOfMemory, naming `what`, where the system starts none.
template <typename Work>
std::thread start_thread(const char* what, Work&& work) {
  try {
    return std::thread(std::forward<Work>(work));
  } catch (const std::system_error& error) {
    fail(ErrorCode::kOutOfMemory, what, fmt::format("the system starts no thread: {}", error.what()), kMoreProcesses);
  }
}

// A pool for work that nobody asked to be done by so many threads: where the system starts fewer it has some of them,
// or none, and a warning says so.
std::unique_ptr<ThreadPool> pool_of_up_to(int threads);

}  // namespace heddle
