#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace heddle::profile::code {

// A thread's program counter, and the context most recently passed to set_context().
struct Sample {
  uint64_t pc = 0;
  uint32_t context = 0;
};

// Samples the program counters of all threads that exist when the sampler is constructed, until stop(). Each thread has
// its own timer and its own sample buffer. The timer's signal, an unused real-time signal, is delivered to that thread.
// Timers measure wall time, because the operating system checks a thread's CPU time only at its clock ticks. A waiting
// thread is sampled at the location where it waits.
class Sampler {
 public:
  static constexpr size_t kMostThreads = 1024;

  // `most`: the maximum number of samples per thread; later samples are lost. Throws kInvalidArgument if another
  // sampler exists or no signal is free, and kOutOfMemory if the system has no timers left.
  Sampler(int64_t period_nanoseconds, size_t most);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  void set_context(uint32_t context);
  // Stops the timers. A second call does nothing.
  void stop();
  // Returns the samples of all threads, grouped by thread. Call it after stop().
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
