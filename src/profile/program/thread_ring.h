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

// One sample of a thread: its position, and the CPU time that the thread used since its previous sample.
struct CpuSample {
  std::span<const PythonFrame> frames;  // innermost frame first
  uint64_t program_counter = 0;
  int64_t nanoseconds = 0;
  const std::string* thread = nullptr;  // the name of the thread
};

// A ring buffer with the samples of one thread. The thread's signal handler writes samples, and a collector thread
// reads them. The handler copies a code object when it first encounters the object, since the object may have been
// freed when the sample is read.
class ThreadRing {
 public:
  static ThreadRing* make();  // uses mmap(); never freed, since a handler may still use it. Throws kOutOfMemory.

  // Starts recording a thread that has no timer yet. `counted`: the CPU time that this thread has used so far.
  void begin(int of_thread, std::string of_name, int64_t counted);
  // Records a sample. Called on the thread, in its signal handler.
  void take(const PythonRuntime& python, uint64_t program_counter);

  // Passes the recorded samples to `sample`, and the data of each code object to `learn` before a sample refers to it.
  // Must not be called by two threads at the same time.
  void collect(const std::function<void(const PythonFrame&, const PythonCode&)>& learn,
               const std::function<void(const CpuSample&)>& sample);

  std::atomic<uint64_t> lost{0};
  std::atomic<int> thread{0};  // the sampled thread; 0: none
  int64_t last = 0;            // the thread's CPU time at its last sample; only its handler uses this
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
  std::array<PythonFrame, kKnown> known_;  // copied code objects, by a hash of their address
  std::vector<PythonFrame> read_;
};

}  // namespace heddle::profile
