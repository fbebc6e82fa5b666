#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "profile/program/python_stack.h"

namespace heddle::profile {

struct ThreadRing;

// One sample of a thread: where it was, and how much CPU time it took since its last one.
struct CpuSample {
  std::span<const PythonFrame> frames;  // the innermost first
  uint64_t program_counter = 0;
  int64_t nanoseconds = 0;
  const std::string* thread = nullptr;  // its name
};

// Samples all threads of this process by timers of their CPU time, which need no rights. Handlers write into a ring for
// each thread; collect() reads these, and gives new threads a timer. One at a time.
class CpuSampler {
 public:
  // `rate`: samples a second of CPU time; the kernel's tick is the upper bound.
  CpuSampler(const PythonRuntime& python, double rate);
  ~CpuSampler();
  CpuSampler(const CpuSampler&) = delete;
  CpuSampler& operator=(const CpuSampler&) = delete;

  // Gives each sample since the last call. From one thread at a time.
  void collect(const std::function<void(const CpuSample&)>& take);
  void stop();             // no samples come any more; collect() gives the rest
  void forget_in_child();  // after fork(): timers and threads are the parent's
  uint64_t lost() const;   // samples without room in their ring: their time goes to the next one
  size_t threads() const { return seen_; }

 private:
  void add_threads();
  void remove_threads();
  double rate_;
  std::map<int, std::unique_ptr<ThreadRing>> rings_;  // by thread
  std::vector<std::unique_ptr<ThreadRing>> ended_;    // whose thread is gone
  uint64_t lost_ = 0;
  size_t seen_ = 0;
  bool stopped_ = false;
};

}  // namespace heddle::profile
