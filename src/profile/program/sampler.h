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

// Samples all threads of this process by timers of their CPU time, which need no rights. Handlers write into a ring for
// each thread; collect() reads these, and gives new threads a timer. One at a time.
class CpuSampler {
 public:
  // `rate`: samples a second of CPU time; the kernel's tick is the upper bound.
  CpuSampler(const PythonRuntime& python, double rate);
  ~CpuSampler();
  CpuSampler(const CpuSampler&) = delete;
  CpuSampler& operator=(const CpuSampler&) = delete;

  // Gives each sample since the last call, and before that what code objects say that a thread met for the first time.
  // From one thread at a time.
  void collect(const std::function<void(const PythonFrame&, const PythonCode&)>& learn,
               const std::function<void(const CpuSample&)>& take);
  void stop();             // no samples come any more; collect() gives the rest
  void forget_in_child();  // after fork(): timers and threads are the parent's
  uint64_t lost() const;   // samples without room in their ring: their time goes to the next one
  size_t threads() const { return seen_; }

 private:
  void add_threads();
  void remove_threads();
  double rate_;
  int signal_;
  std::map<int, ThreadRing*> rings_;  // by thread
  std::vector<ThreadRing*> ended_;    // whose thread is gone
  uint64_t lost_ = 0;
  size_t seen_ = 0;
  bool stopped_ = false;
};

}  // namespace heddle::profile
