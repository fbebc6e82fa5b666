#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "profile/program/python_stack.h"
#include "profile/program/thread_ring.h"

namespace heddle::profile {

// Samples all threads of this process with timers of their CPU time, which need no privileges. Signal handlers write
// samples into a ring buffer per thread. collect() reads the ring buffers and starts timers for new threads. Only one
// sampler may exist at a time.
class CpuSampler {
 public:
  // `rate`: samples per second of CPU time. The operating system's tick rate is the upper bound.
  CpuSampler(const PythonRuntime& python, double rate);
  ~CpuSampler();
  CpuSampler(const CpuSampler&) = delete;
  CpuSampler& operator=(const CpuSampler&) = delete;

  // Calls `take` with each sample that was recorded since the previous collect(). Before that, calls `learn` with each
  // code object that a thread encountered for the first time. Only one thread at a time may call this function.
  void collect(const std::function<void(const PythonFrame&, const PythonCode&)>& learn,
               const std::function<void(const CpuSample&)>& take);
  void stop();             // stops sampling; a later collect() returns the remaining samples
  void forget_in_child();  // call after fork(): timers and threads belong to the parent
  uint64_t lost() const;   // samples lost to full rings; the next sample accounts for their time
  size_t threads() const { return seen_; }

 private:
  void add_threads();
  void remove_threads();
  double rate_;
  int signal_;
  std::map<int, ThreadRing*> rings_;  // by thread
  std::vector<ThreadRing*> ended_;    // rings of threads that have ended
  uint64_t lost_ = 0;
  size_t seen_ = 0;
  bool stopped_ = false;
};

}  // namespace heddle::profile
