#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "ort/gpu.h"
#include "runtime/cuda/launch.h"

namespace heddle::ort {

// CUDA graphs of a session's runs. A run that has no graph yet is recorded while it runs; its graph does the same work
// on the same memory. Runs of a session with graphs do not overlap.
class Replays {
 public:
  using Stream = CudaDriver::Handle;
  static constexpr int kNone = -1;  // the number of a run that is not to have a graph

  explicit Replays(GpuMemory& memory) : memory_(memory), stream_(memory.context()) {}
  ~Replays();
  Replays(const Replays&) = delete;
  Replays& operator=(const Replays&) = delete;

  bool has(int number) const { return graphs_.contains(number); }
  void begin(int number);
  // Adds a region of the run: `enqueue` repeats it on a stream. The memory of the session at `held` keeps its contents
  // between runs.
  void add(std::function<void(Stream)> enqueue, const std::vector<void*>& held);
  // Makes the graph if all `regions` have been added, which is not so after an error.
  void end(size_t regions);
  // Returns when the work is done. Throws kDevice.
  void replay(int number) const;

 private:
  struct Recording {
    std::vector<std::function<void(Stream)>> calls;
    std::vector<void*> held;
    std::unique_ptr<runtime::CudaGraph> graph;
  };
  void release(const Recording& recording);

  GpuMemory& memory_;
  runtime::CudaStream stream_;
  std::map<int, Recording> graphs_;
  std::optional<int> number_;  // of the run that is being recorded
  Recording recorded_;
};

}  // namespace heddle::ort
