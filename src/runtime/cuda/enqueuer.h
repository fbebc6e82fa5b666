#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/cuda/program.h"

namespace heddle::runtime {

// Enqueues runs of a plan in memory and on a stream of the caller. Never waits. From the second run with the same
// addresses on, a run is the launch of one graph. On a capturing stream, its kernels become nodes of the caller's
// graph. Thread-safe.
class CudaEnqueuer {
 public:
  // Throws kUnsupportedOperator for a plan whose runs need the host.
  CudaEnqueuer(CudaCode& code, const Plan& plan);

  // Bytes of memory that one run needs besides inputs and outputs. The address must be a multiple of
  // CudaCallersMemory::kAlignment.
  size_t workspace_bytes() const { return workspace_bytes_; }

  // `addresses`: of inputs and outputs, in the plan's order, and of the workspace. The run owns this memory until the
  // stream has finished it. Throws kDevice.
  void enqueue(std::vector<uint64_t> addresses, CudaDriver::Handle stream) const;

 private:
  // The plan bound to addresses.
  struct Bound {
    std::vector<uint64_t> addresses;
    CudaProgram program;
    std::unique_ptr<CudaGraph> graph;  // from the second run on
  };
  using Shared = std::shared_ptr<Bound>;
  // The bound plan and the graph of a run. If the graph is null, the program's actions are enqueued.
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
  CudaStream capturing_;             // stream for capturing graphs
  mutable std::mutex mutex_;         // guards the members below
  mutable std::list<Shared> bound_;  // most recently used first
};

}  // namespace heddle::runtime
