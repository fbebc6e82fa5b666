#include "driver/compile/background.h"

#include <chrono>
#include <exception>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/thread/thread.h"

namespace heddle::driver {

Background::~Background() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  cancellation_.cancel();
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// If the system cannot start a thread, the task is dropped: what it would prepare is made on demand.
void Background::add(std::string what, std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  try {
    if (!thread_.joinable()) thread_ = start_thread("background", [this] { work(); });
  } catch (const Error& error) {
    warn_once(fmt::format("{} is left out: {}. {}", what, error.why(), error.remedy()));
    return;
  }
  tasks_.push_back({std::move(what), std::move(task)});
  changed_.notify_all();
}

void Background::wait() {
  constexpr auto kPause = std::chrono::milliseconds(50);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kPause, [this] { return tasks_.empty(); })) {
    lock.unlock();
    check_cancelled();
    lock.lock();
  }
}

bool Background::ends() const {
  const std::lock_guard lock(mutex_);
  return ends_;
}

void Background::work() {
  const CancelScope scope(&cancellation_);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !tasks_.empty(); });
    if (ends_) return;
    const Task& task = tasks_.front();  // stays where it is while others are added behind it
    lock.unlock();
    try {
      task.run();
    } catch (const std::exception& error) {
      log(LogLevel::kInfo, fmt::format("{}: {}", task.what, error.what()));
    }
    lock.lock();
    tasks_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace heddle::driver
