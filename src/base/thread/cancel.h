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

// Thrown by cancelled work. It is not an Error, so that code that handles failures does not handle cancellations.
class Cancelled : public std::exception {
 public:
  const char* what() const noexcept override { return "the work was cancelled"; }
};

// Lets a caller cancel long work that it started. The work runs in a CancelScope and calls check_cancelled() at every
// point where it can stop. The workers of a thread pool share the scope of the thread that submitted the job; they
// start no further range of a cancelled job. Thread-safe.
class Cancellation {
 public:
  Cancellation() = default;
  virtual ~Cancellation() = default;
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  // True if the work was cancelled. A call takes a few nanoseconds.
  bool is_cancelled();

  // The Cancellation of this thread's current work; null if the work cannot be cancelled.
  static Cancellation* current() { return of_thread().cancellation; }

 private:
  friend class CancelScope;
  struct OfThread {
    Cancellation* cancellation = nullptr;
    bool asks = false;
  };
  // Uses static thread-local storage, so access is also fast in a library that is loaded at run time.
  static OfThread& of_thread() {
    [[gnu::tls_model("initial-exec")]] static thread_local OfThread state;
    return state;
  }
  // Returns true if the caller wants the work to end. Called from time to time by the thread of the CancelScope.
  virtual bool asked() { return false; }

  // The minimum time between two calls of asked(), in nanoseconds: asked() may take a lock, such as Python's.
  static constexpr int64_t kPause = 200'000'000;
  static constexpr int64_t kNever = -1, kOnce = 0;

  std::atomic<bool> cancelled_{false};
  int64_t next_ = kNever;  // when to call asked() next, in nanoseconds; used only by the thread that calls asked()
};

// Makes this thread's work cancellable until the scope ends. Scopes may be nested; the innermost scope applies.
class CancelScope {
 public:
  enum class Asks : uint8_t { kNo, kYes };
  // If `asks` is kYes, this thread calls Cancellation::asked(). If `cancellation` is null, the work cannot be
  // cancelled.
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
  // The first call does not read the clock, so short work never reads it.
  if (next_ == kNever) {
    next_ = kOnce;
    return false;
  }
  // Reading the coarse clock takes a few nanoseconds, and its tick is short compared with kPause.
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

// Calls f(from, to) on consecutive subranges of [begin, end). If this thread's work can be cancelled, a subrange has at
// most `longest` indices (0: no limit), and check_cancelled() is called between two subranges. Otherwise there is one
// subrange.
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

// Locks a mutex that another thread may hold for a long time. Throws Cancelled if this thread's work is cancelled
// while it waits.
inline std::unique_lock<std::timed_mutex> lock_or_cancel(std::timed_mutex& mutex) {
  constexpr auto kStep = std::chrono::milliseconds(50);
  std::unique_lock lock(mutex, std::defer_lock);
  while (!lock.try_lock_for(kStep)) check_cancelled();
  return lock;
}

}  // namespace heddle
