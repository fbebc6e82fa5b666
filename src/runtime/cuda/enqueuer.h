#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/cuda/program.h"

namespace heddle::runtime {

// Enqueues runs of a plan on a stream of the caller, in memory of the caller. Never waits for the device. The first run
// with a set of addresses enqueues the plan's actions one by one; each later run with the same addresses launches a
// single CUDA graph. If the caller captures the stream, the plan's kernels become nodes of the caller's graph,
// which then keeps kernels and constants alive.
// Thread-safe.
class CudaEnqueuer {
 public:
  // Throws kUnsupportedOperator for a plan whose runs need the host.
  CudaEnqueuer(std::shared_ptr<CudaCode> code, const Plan& plan);

  // The size in bytes of the workspace that one run needs. The address of the workspace must be a multiple of
  // CudaCallersMemory::kAlignment.
  size_t workspace_bytes() const { return workspace_bytes_; }

  // `addresses` holds the addresses of the inputs, the outputs (both in the plan's order) and the workspace. The run
  // owns this memory until the stream has finished the run. Throws kDevice.
  void enqueue(std::vector<uint64_t> addresses, CudaDriver::Handle stream) const;

 private:
  // The plan bound to a set of addresses.
  struct Bound {
    std::vector<uint64_t> addresses;
    CudaProgram program;
    std::unique_ptr<CudaGraph> graph;  // set from the second run on
  };
  using Shared = std::shared_ptr<Bound>;
  // The bound plan and the graph of a run. If `graph` is null, the actions of the bound program are enqueued instead.
  struct Run {
    Shared bound;
    const CudaGraph* graph = nullptr;
  };

  Run run_at(std::vector<uint64_t> addresses, bool captures) const;
  Shared bind_to(std::vector<uint64_t> addresses) const;
  void put_on(CudaDriver::Handle stream, const Bound& bound) const;

  const std::shared_ptr<CudaCode> code_;
  const Plan& plan_;
  size_t workspace_bytes_ = 0;
  CudaStream capturing_;             // stream for capturing graphs
  mutable std::mutex mutex_;         // guards the members below
  mutable std::list<Shared> bound_;  // most recently used first
};

}  // namespace heddle::runtime
