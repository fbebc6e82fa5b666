#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/thread/cancel.h"

namespace heddle::driver {

// Runs background tasks one after another, on one thread that starts with the first task.
class Background {
 public:
  Background() = default;
  // Cancels the running task, waits until it has ended, and drops the tasks that have not started.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Adds a task. If the task throws, the exception is logged with `what`.
  void add(std::string what, std::function<void()> task);
  // Waits until all added tasks have ended.
  void wait();
  // True if the object is being destroyed, so that a long task should stop early.
  bool ends() const;

 private:
  struct Task {
    std::string what;
    std::function<void()> run;
  };
  void work();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;  // the first one is running
  bool ends_ = false;
  Cancellation cancellation_;  // cancels any task
  std::thread thread_;
};

}  // namespace heddle::driver
