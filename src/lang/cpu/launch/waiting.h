#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace heddle::lang::cpu {

// Detects deadlocks among the programs of one launch that wait for each other. A deadlock means: every thread that runs
// a program is in a loop that reads the same values over and over, and each loop has read again since the last thread
// began to wait.
class Waiting {
 public:
  struct Program {
    int64_t site = 0;  // identifies the waiting loop
    std::array<int64_t, 3> program{};
  };

  // `threads` is the number of threads that run programs. A deadlock is reported only after `patience`, since code
  // outside the launch may also change memory.
  Waiting(int threads, std::chrono::duration<double> patience)
      : patience_(patience), workers_(static_cast<size_t>(threads)) {}

  void begin(int worker) { workers_[static_cast<size_t>(worker)].runs.store(true); }
  void end(int worker) {
    Worker& w = workers_[static_cast<size_t>(worker)];
    if (w.waits.load()) resume(worker);
    ended_.fetch_add(1);  // before `runs` is cleared: this program may have just written a value
    w.runs.store(false);
  }

  // Call this when a loop of this worker has read the same values again. Returns true if nothing can end the wait; the
  // program must then return.
  bool wait(int worker, int64_t site, const int64_t* program);
  void resume(int worker);

  // A deadlocked program, the first in launch order. Empty if there was no deadlock.
  const std::optional<Program>& stuck() const { return stuck_; }
  bool is_stuck() const { return is_stuck_.load(std::memory_order_relaxed); }
  // The number of deadlocked programs.
  int64_t stuck_programs() const { return stuck_programs_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Worker {
    std::atomic<bool> runs{false}, waits{false};
    Clock::time_point since, last;  // times of the first and the most recent wait() of the current wait
    int64_t ended = 0;              // the number of programs that had ended at the first wait()
    Program program;
  };
  bool nothing_will_change(Clock::time_point now) const;

  const std::chrono::duration<double> patience_;
  std::mutex mutex_;
  std::vector<Worker> workers_;
  std::atomic<int64_t> ended_{0};
  std::atomic<bool> is_stuck_{false};
  std::optional<Program> stuck_;
  int64_t stuck_programs_ = 0;
};

// The value of $HEDDLE_TILE_PATIENCE in seconds, or the default.
std::chrono::duration<double> patience();

}  // namespace heddle::lang::cpu
