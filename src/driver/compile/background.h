#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/thread/cancel.h"

namespace heddle::driver {

// Background tasks, run one after another on a thread that starts with the first.
class Background {
 public:
  Background() = default;
  // Cancels the running task, waits for its end, and drops the tasks after it.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Exceptions of a task are logged with `what`.
  void add(std::string what, std::function<void()> task);
  // Returns when all added tasks have ended.
  void wait();
  // True if a long task should give up.
  bool ends() const;

 private:
  struct Task {
    std::string what;
    std::function<void()> run;
  };
  void work();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;  // the first one runs
  bool ends_ = false;
  Cancellation cancellation_;  // of all tasks
  std::thread thread_;
};

}  // namespace heddle::driver
