#pragma once

#include <algorithm>
#include <cstdint>

#include "base/thread/thread_pool.h"

namespace heddle::ir {

// The thread pool of the reference evaluator. There is one per process, with as many threads as the process may use.
ThreadPool& eval_pool();

// Calls body(begin, end) in parallel for disjoint ranges that cover [0, count). `cost` is the work of one item, in
// element operations. If all items together take no more than about ten thousand operations, they run on the calling
// thread.
template <typename Body>
void parallel_for(int64_t count, int64_t cost, const Body& body) {
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(cost, 1));
  if (count <= grain) {
    if (count > 0) body(int64_t{0}, count);
    return;
  }
  eval_pool().run(
      count, [&](int64_t begin, int64_t end, int) { body(begin, end); }, grain);
}

}  // namespace heddle::ir
