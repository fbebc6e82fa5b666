#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace heddle::profile::code {

// What a thread was doing: the program counter, and what set_context() said last.
struct Sample {
  uint64_t pc = 0;
  uint32_t context = 0;
};

// Samples the program counters of all threads that this process has when it is made, from then until stop(). Each
// thread has a timer, whose signal, one of real time that is free, goes to the thread itself and whose samples lie in
// memory of their own. The timers count time, not the processor's time of their thread, which the kernel looks at only
// when its clock ticks. A thread that waits is sampled where it waits.
class Sampler {
 public:
  static constexpr size_t kMostThreads = 1024;

  // `most`: how many samples a thread may have; what comes behind them is lost. Throws kInvalidArgument while another
  // sampler lives or where no signal is free, kOutOfMemory where the system has no timers left.
  Sampler(int64_t period_nanoseconds, size_t most);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  void set_context(uint32_t context);
  // Ends the timers; the second call does nothing.
  void stop();
  // Of all threads, thread by thread, after stop().
  std::vector<Sample> samples() const;
  int64_t lost() const;

 private:
  struct Ring;
  struct Handler;
  void watch(int thread, int64_t period);

  size_t most_;
  bool running_ = true;
  std::vector<std::unique_ptr<Ring>> rings_;
};

}  // namespace heddle::profile::code
