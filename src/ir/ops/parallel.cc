#include "ir/ops/parallel.h"

#include <memory>
#include <thread>

#include "base/thread/thread.h"

namespace heddle::ir {

ThreadPool& eval_pool() {
  static const std::unique_ptr<ThreadPool> pool =
      pool_of_up_to(std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  return *pool;
}

}  // namespace heddle::ir
