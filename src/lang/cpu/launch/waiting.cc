#include "lang/cpu/launch/waiting.h"

#include <algorithm>

#include "base/system/environment.h"

namespace heddle::lang::cpu {

bool Waiting::wait(int worker, int64_t site, const int64_t* program) {
  const std::lock_guard lock(mutex_);
  if (is_stuck()) return true;
  Worker& w = workers_[static_cast<size_t>(worker)];
  const Clock::time_point now = Clock::now();
  const int64_t ended = ended_.load();
  if (!w.waits.load() || w.ended != ended) {
    w.since = now;
    w.ended = ended;
    w.waits.store(true);
  }
  w.last = now;
  w.program = {site, {program[0], program[1], program[2]}};
  if (!nothing_will_change(now)) return false;
  const auto order = [](const Program& p) { return std::array{p.program[2], p.program[1], p.program[0]}; };
  for (const Worker& other : workers_) {
    if (!other.runs.load()) continue;
    ++stuck_programs_;
    if (!stuck_ || order(other.program) < order(*stuck_)) stuck_ = other.program;
  }
  is_stuck_.store(true);
  return true;
}

void Waiting::resume(int worker) {
  const std::lock_guard lock(mutex_);
  workers_[static_cast<size_t>(worker)].waits.store(false);
}

// Whoever could write is in a loop and has read memory after all of them were.
bool Waiting::nothing_will_change(Clock::time_point now) const {
  Clock::time_point all_wait{}, all_read = now;
  for (const Worker& w : workers_) {
    if (!w.runs.load()) continue;
    if (!w.waits.load() || w.ended != ended_.load()) return false;
    all_wait = std::max(all_wait, w.since);
    all_read = std::min(all_read, w.last);
  }
  return all_read > all_wait && now - all_wait >= patience_;
}

std::chrono::duration<double> patience() {
  constexpr double kSeconds = 10, kLeast = 1e-3, kMost = 1e6;
  return std::chrono::duration<double>(number_in_environment("HEDDLE_TILE_PATIENCE", kLeast, kMost).value_or(kSeconds));
}

}  // namespace heddle::lang::cpu
