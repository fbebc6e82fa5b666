#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace heddle::profile::code {

// A thread's program counter, and the context last passed to set_context().
struct Sample {
  uint64_t pc = 0;
  uint32_t context = 0;
};

// Samples the program counters of all threads that exist when it is made, until stop(). Each thread has its own timer,
// whose signal (a free real-time signal) goes to that thread, and its own memory for samples. Timers run on wall time:
// the kernel checks a thread's CPU time only at its clock ticks. A waiting thread is sampled where it waits.
class Sampler {
 public:
  static constexpr size_t kMostThreads = 1024;

  // `most`: the most samples of a thread; later ones are lost. Throws kInvalidArgument while another sampler lives or
  // if no signal is free, kOutOfMemory if the system has no timers left.
  Sampler(int64_t period_nanoseconds, size_t most);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  void set_context(uint32_t context);
  // Ends the timers; the second call does nothing.
  void stop();
  // After stop(): the samples of all threads, thread by thread.
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
