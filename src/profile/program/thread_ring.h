#pragma once

#include <time.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "profile/program/python_stack.h"
#include "profile/program/record_ring.h"

namespace heddle::profile {

// One sample of a thread: where it was, and how much CPU time it took since its last one.
struct CpuSample {
  std::span<const PythonFrame> frames;  // the innermost first
  uint64_t program_counter = 0;
  int64_t nanoseconds = 0;
  const std::string* thread = nullptr;  // its name
};

// The samples of one thread between its signal handler, which writes them, and the thread that collects them. A code
// object is copied when the handler first meets it: it may be gone when the sample is read.
class ThreadRing {
 public:
  static ThreadRing* make();  // by mmap(), never freed: a handler may be at work on it. Throws kOutOfMemory.

  // For a thread that has no timer yet. `counted`: its CPU time until now.
  void begin(int of_thread, std::string of_name, int64_t counted);
  // In the thread, in a signal handler.
  void take(const PythonRuntime& python, uint64_t program_counter);

  // From one thread at a time: `learn` is given what code objects say before a sample has them.
  void collect(const std::function<void(const PythonFrame&, const PythonCode&)>& learn,
               const std::function<void(const CpuSample&)>& sample);

  std::atomic<uint64_t> lost{0};
  std::atomic<int> thread{0};  // whose samples it takes; 0: none
  int64_t last = 0;            // CPU time of the thread at its last sample; its handler's
  timer_t timer{};
  std::string name;

 private:
  static constexpr size_t kFrames = 1024, kKnown = 4096, kWords = 64 * 1024;
  enum Kind : uint64_t { kSample, kCode };

  ThreadRing() = default;
  bool announce(const PythonRuntime& python, const PythonFrame& frame);
  size_t place_of(const PythonFrame& frame) const;

  RecordRing<kWords> ring_;
  std::array<PythonFrame, kFrames> frames_;
  std::array<PythonFrame, kKnown> known_;  // code objects that were copied, by a hash of their address
  std::vector<PythonFrame> read_;
};

}  // namespace heddle::profile
