#pragma once

#include <algorithm>
#include <atomic>

#include "base/thread/thread_pool.h"

namespace heddle {

// Calls body(task, worker) for the tasks [0, tasks) on the threads of a pool. Tasks start in order, each on the next
// free thread, so a task may wait for an earlier one. The body must not throw.
template <typename Body>
void run_in_order(ThreadPool& pool, int64_t tasks, const Body& body) {
  std::atomic<int64_t> next{0};
  pool.run(std::min<int64_t>(tasks, pool.threads()), [&](int64_t, int64_t, int worker) {
    for (int64_t task = next.fetch_add(1); task < tasks; task = next.fetch_add(1)) body(task, worker);
  });
}

}  // namespace heddle
