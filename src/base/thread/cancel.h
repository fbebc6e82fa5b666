#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>

namespace heddle {

// Thrown by work that was cancelled. It is no Error, so that no fallback takes it for a failure.
class Cancelled : public std::exception {
 public:
  const char* what() const noexcept override { return "the work was cancelled"; }
};

// A caller's means to end work that it started and that may take long. Work runs in a CancelScope and calls
// check_cancelled() wherever it can stop; a thread pool is in the scope of who calls it with all of its workers, and
// begins no range of a job that was cancelled. Thread-safe.
class Cancellation {
 public:
  // `asked`: whether the caller wants the work to end. It is called by the thread of the CancelScope, now and then.
  explicit Cancellation(std::function<bool()> asked = {}) : asked_(std::move(asked)) {}
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  // Takes some nanoseconds. Never throws, unless `asked` does.
  bool is_cancelled();

  // That of this thread's work; null: nobody can cancel it.
  static Cancellation* current() { return current_; }

 private:
  friend class CancelScope;
  // A caller that holds a lock for `asked`, such as Python's, may have to wait for it each time.
  static constexpr int64_t kPause = 200'000'000;
  static inline thread_local Cancellation* current_ = nullptr;
  static inline thread_local bool asks_ = false;

  const std::function<bool()> asked_;
  std::atomic<bool> cancelled_{false};
  int64_t next_ = 0;  // when to ask again, in nanoseconds; of the thread that asks
};

// What this thread does until the end of the scope can be cancelled. Scopes nest; the inner one counts.
class CancelScope {
 public:
  enum class Asks : uint8_t { kNo, kYes };
  // `asks`: whether this thread is the one that calls Cancellation's `asked`. Null: the work cannot be cancelled.
  explicit CancelScope(Cancellation* cancellation, Asks asks = Asks::kYes)
      : outer_(std::exchange(Cancellation::current_, cancellation)),
        outer_asks_(std::exchange(Cancellation::asks_, asks == Asks::kYes)) {}
  ~CancelScope() { Cancellation::current_ = outer_, Cancellation::asks_ = outer_asks_; }
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

 private:
  Cancellation* const outer_;
  const bool outer_asks_;
};

inline bool Cancellation::is_cancelled() {
  if (cancelled_.load(std::memory_order_relaxed)) return true;
  if (current_ != this || !asks_ || !asked_) return false;
  // The coarse clock takes no more than a few nanoseconds, and its tick is short against the pause.
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  const int64_t now = int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  if (now < next_) return false;
  const bool is_first = next_ == 0;
  next_ = now + kPause;
  if (!is_first && asked_()) cancel();
  return cancelled_.load(std::memory_order_relaxed);
}

// Throws Cancelled if this thread's work was cancelled.
inline void check_cancelled() {
  if (Cancellation::current() != nullptr && Cancellation::current()->is_cancelled()) throw Cancelled();
}

// Calls f(from, to) over [begin, end): at once, or if this thread's work can be cancelled in parts of at most `longest`
// (0: of any length) with a check in front of each.
template <typename F>
void each_part(int64_t begin, int64_t end, int64_t longest, const F& f) {
  if (longest <= 0 || Cancellation::current() == nullptr) return f(begin, end);
  for (; begin < end; begin += longest) {
    check_cancelled();
    f(begin, std::min(end, begin + longest));
  }
}

// Waits for a mutex that another thread may hold for long. Throws Cancelled.
inline std::unique_lock<std::timed_mutex> lock_or_cancel(std::timed_mutex& mutex) {
  constexpr auto kStep = std::chrono::milliseconds(50);
  std::unique_lock lock(mutex, std::defer_lock);
  while (!lock.try_lock_for(kStep)) check_cancelled();
  return lock;
}

}  // namespace heddle
