#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <exception>
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
  Cancellation() = default;
  virtual ~Cancellation() = default;
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  // Takes some nanoseconds.
  bool is_cancelled();

  // That of this thread's work; null: nobody can cancel it.
  static Cancellation* current() { return of_thread().cancellation; }

 private:
  friend class CancelScope;
  struct OfThread {
    Cancellation* cancellation = nullptr;
    bool asks = false;
  };
  // Of the memory that a thread has from its start, so that libraries that are loaded later reach it as fast.
  static OfThread& of_thread() {
    [[gnu::tls_model("initial-exec")]] static thread_local OfThread state;
    return state;
  }
  // Whether the caller wants the work to end. It is called by the thread of the CancelScope, now and then.
  virtual bool asked() { return false; }

  // asked() may wait for a lock each time, such as Python's.
  static constexpr int64_t kPause = 200'000'000;
  static constexpr int64_t kNever = -1, kOnce = 0;

  std::atomic<bool> cancelled_{false};
  int64_t next_ = kNever;  // when to ask again, in nanoseconds; of the thread that asks
};

// What this thread does until the end of the scope can be cancelled. Scopes nest; the inner one counts.
class CancelScope {
 public:
  enum class Asks : uint8_t { kNo, kYes };
  // `asks`: whether this thread is the one that calls Cancellation's `asked`. Null: the work cannot be cancelled.
  explicit CancelScope(Cancellation* cancellation, Asks asks = Asks::kYes)
      : outer_(std::exchange(Cancellation::of_thread(), {cancellation, asks == Asks::kYes})) {}
  ~CancelScope() { Cancellation::of_thread() = outer_; }
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

 private:
  const Cancellation::OfThread outer_;
};

inline bool Cancellation::is_cancelled() {
  if (cancelled_.load(std::memory_order_relaxed)) return true;
  const OfThread& here = of_thread();
  if (here.cancellation != this || !here.asks) return false;
  // Short work asks for the time not once.
  if (next_ == kNever) {
    next_ = kOnce;
    return false;
  }
  // The coarse clock takes no more than a few nanoseconds, and its tick is short against the pause.
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  const int64_t now = int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  if (now < next_) return false;
  const bool is_first = next_ == kOnce;
  next_ = now + kPause;
  if (!is_first && asked()) cancel();
  return cancelled_.load(std::memory_order_relaxed);
}

// Throws Cancelled if this thread's work was cancelled.
inline void check_cancelled() {
  if (Cancellation::current() != nullptr && Cancellation::current()->is_cancelled()) throw Cancelled();
}

// Calls f(from, to) over [begin, end): at once, or if this thread's work can be cancelled in parts of at most `longest`
// (0: of any length) with checks between them.
template <typename F>
void each_part(int64_t begin, int64_t end, int64_t longest, const F& f) {
  if (longest <= 0 || Cancellation::current() == nullptr) return f(begin, end);
  while (true) {
    f(begin, std::min(end, begin + longest));
    begin += longest;
    if (begin >= end) return;
    check_cancelled();
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
