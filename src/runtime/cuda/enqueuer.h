#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/cuda/program.h"

namespace heddle::runtime {

// Runs of a plan in memory and on a stream of the caller. It waits for nothing, and from the second run with the same
// addresses on a run is the launch of one graph. On a stream that captures, its kernels become nodes of the caller's
// graph. Thread-safe.
class CudaEnqueuer {
 public:
  // Throws kUnsupportedOperator for a plan in which the host takes part in a run.
  CudaEnqueuer(CudaCode& code, const Plan& plan);

  // What one run needs beside inputs and outputs, at an address that is a multiple of CudaCallersMemory::kAlignment.
  size_t workspace_bytes() const { return workspace_bytes_; }

  // `addresses`: of inputs and outputs, in the plan's order, and of the workspace. They stay the run's until the stream
  // has passed it. Throws kDevice.
  void enqueue(std::vector<uint64_t> addresses, CudaDriver::Handle stream) const;

 private:
  // The plan bound to addresses.
  struct Bound {
    std::vector<uint64_t> addresses;
    CudaProgram program;
    std::unique_ptr<CudaGraph> graph;  // from the second run on
  };
  using Shared = std::shared_ptr<Bound>;
  // What a run takes: the graph, or null, for which the actions of the program are enqueued.
  struct Run {
    Shared bound;
    const CudaGraph* graph = nullptr;
  };

  Run run_at(std::vector<uint64_t> addresses, bool captures) const;
  Shared bind_to(std::vector<uint64_t> addresses) const;
  void put_on(CudaDriver::Handle stream, const Bound& bound) const;

  CudaCode& code_;
  const Plan& plan_;
  size_t workspace_bytes_ = 0;
  CudaStream capturing_;             // what graphs are captured on
  mutable std::mutex mutex_;         // of the rest
  mutable std::list<Shared> bound_;  // the last used first
};

}  // namespace heddle::runtime
