#include "ir/ops/parallel.h"

#include <thread>

namespace heddle::ir {

ThreadPool& eval_pool() {
  static ThreadPool pool(std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  return pool;
}

}  // namespace heddle::ir
