#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace heddle::lang::cpu {

// The programs of one launch that wait for others: finds waits that nothing will end. All threads that run a program
// have to be in a loop that reads the same again and again, each of them still after the last of them began to.
class Waiting {
 public:
  struct Program {
    int64_t site = 0;  // of the loop
    std::array<int64_t, 3> program{};
  };

  // `threads` run programs. A wait without end is one after `patience`, in which memory may change from outside of the
  // launch.
  Waiting(int threads, std::chrono::duration<double> patience)
      : patience_(patience), workers_(static_cast<size_t>(threads)) {}

  void begin(int worker) { workers_[static_cast<size_t>(worker)].runs.store(true); }
  void end(int worker) {
    Worker& w = workers_[static_cast<size_t>(worker)];
    if (w.waits.load()) resume(worker);
    ended_.fetch_add(1);  // first: who does not run any more may have written just now
    w.runs.store(false);
  }

  // A loop of this worker read the same again. True: the program has to return, nothing will end its wait.
  bool wait(int worker, int64_t site, const int64_t* program);
  void resume(int worker);

  // The first of the programs that waited without end, if they did.
  const std::optional<Program>& stuck() const { return stuck_; }
  bool is_stuck() const { return is_stuck_.load(std::memory_order_relaxed); }
  // How many programs waited for each other.
  int64_t stuck_programs() const { return stuck_programs_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Worker {
    std::atomic<bool> runs{false}, waits{false};
    Clock::time_point since, last;  // the first and the last report of its wait
    int64_t ended = 0;              // programs that had ended at the first
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

// $HEDDLE_TILE_PATIENCE in seconds, or what is taken without.
std::chrono::duration<double> patience();

}  // namespace heddle::lang::cpu
