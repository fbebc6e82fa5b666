#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace heddle::lang::cpu {

// Detects deadlocks among the programs of one launch that wait for each other: every thread that runs a program is in a
// loop that reads the same values again and again, and has read again after the last thread began to wait.
class Waiting {
 public:
  struct Program {
    int64_t site = 0;  // of the waiting loop
    std::array<int64_t, 3> program{};
  };

  // `threads` run programs. A deadlock is reported only after `patience`, since memory may also change from outside of
  // the launch.
  Waiting(int threads, std::chrono::duration<double> patience)
      : patience_(patience), workers_(static_cast<size_t>(threads)) {}

  void begin(int worker) { workers_[static_cast<size_t>(worker)].runs.store(true); }
  void end(int worker) {
    Worker& w = workers_[static_cast<size_t>(worker)];
    if (w.waits.load()) resume(worker);
    ended_.fetch_add(1);  // before `runs` is cleared: this program may have written just now
    w.runs.store(false);
  }

  // Call it when a loop of this worker has read the same values again. True: nothing will end its wait, so the program
  // has to return.
  bool wait(int worker, int64_t site, const int64_t* program);
  void resume(int worker);

  // The first of the deadlocked programs, if there was a deadlock.
  const std::optional<Program>& stuck() const { return stuck_; }
  bool is_stuck() const { return is_stuck_.load(std::memory_order_relaxed); }
  // The number of deadlocked programs.
  int64_t stuck_programs() const { return stuck_programs_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Worker {
    std::atomic<bool> runs{false}, waits{false};
    Clock::time_point since, last;  // times of the first and the last wait() of this wait
    int64_t ended = 0;              // programs that had ended at the first wait()
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

// $HEDDLE_TILE_PATIENCE in seconds, or the default.
std::chrono::duration<double> patience();

}  // namespace heddle::lang::cpu
