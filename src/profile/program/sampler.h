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

// Samples all threads of this process by timers of their CPU time, which need no privileges. Signal handlers write into
// a ring for each thread. collect() reads the rings and gives new threads a timer. Only one sampler at a time.
class CpuSampler {
 public:
  // `rate`: samples a second of CPU time; the kernel's tick is the upper bound.
  CpuSampler(const PythonRuntime& python, double rate);
  ~CpuSampler();
  CpuSampler(const CpuSampler&) = delete;
  CpuSampler& operator=(const CpuSampler&) = delete;

  // Passes each sample since the last call to `take`. A code object that a thread met for the first time goes to
  // `learn` before that. Call it from one thread at a time.
  void collect(const std::function<void(const PythonFrame&, const PythonCode&)>& learn,
               const std::function<void(const CpuSample&)>& take);
  void stop();             // takes no more samples; collect() gives the rest
  void forget_in_child();  // after fork(): timers and threads are the parent's
  uint64_t lost() const;   // samples dropped by full rings; the next sample gets their time
  size_t threads() const { return seen_; }

 private:
  void add_threads();
  void remove_threads();
  double rate_;
  int signal_;
  std::map<int, ThreadRing*> rings_;  // by thread
  std::vector<ThreadRing*> ended_;    // of threads that ended
  uint64_t lost_ = 0;
  size_t seen_ = 0;
  bool stopped_ = false;
};

}  // namespace heddle::profile
