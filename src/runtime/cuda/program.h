#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "runtime/cuda/launch.h"
#include "runtime/cuda/memory.h"

namespace heddle::runtime {

// A plan that is bound to the memory of one run. It consists of work for a CUDA stream, with all addresses resolved,
// and of host steps in between. Short loops of known length are unrolled.

struct CudaCopy {
  uint64_t to = 0, from = 0;
  size_t bytes = 0;
};
struct CudaZeros {
  uint64_t to = 0;
  size_t bytes = 0;
};
struct CudaAction {
  std::variant<CudaBoundLaunch, CudaCopy, CudaZeros> what;
  size_t step = 0;  // the index of the step in the outermost plan

  // Enqueues the action on a stream. `behind_kernel`: true if the previous work on the stream is a kernel launch that
  // the action may overlap. If the action is a kernel that supports programmatic dependent launch, it may then begin
  // before the previous kernel ends.
  void enqueue(const CudaContext& context, CudaDriver::Handle stream, bool behind_kernel = false) const;
};
void enqueue(const CudaContext& context, const CudaCopy& copy, CudaDriver::Handle stream);

// Enqueues the actions on a stream in order. Kernels that support programmatic dependent launch may begin before the
// previous kernel ends.
void enqueue_actions(const CudaContext& context, std::span<const CudaAction> actions, CudaDriver::Handle stream);

// Consecutive actions, captured as one CUDA graph.
struct CudaSegment {
  std::vector<CudaAction> actions;
  std::unique_ptr<CudaGraph> graph;
};

// The location of a value: on the device, on the host, or both.
struct CudaValue {
  uint64_t device = 0;
  const Tensor* constant = nullptr;  // a constant on the host; it is copied to the device on demand
  const void* known = nullptr;       // for a value that is not a constant: a host copy that never changes
  int input = -1;                    // the port of an input of the caller; it is copied to the device on demand

  const void* host() const { return constant != nullptr ? constant->data() : known; }
};

// A step that the reference interpreter runs on the host. Its parameters are copied to the host, and its results to the
// device.
struct CudaHostCall {
  const ReferenceStep* step = nullptr;
  const Plan* plan = nullptr;
  std::vector<CudaValue> parameters;
  std::vector<uint64_t> results;
};

struct CudaLoop;
struct CudaBranch;

struct CudaNode {
  std::variant<CudaSegment, CudaHostCall, std::unique_ptr<CudaLoop>, std::unique_ptr<CudaBranch>> what;
  size_t step = 0;  // the index of the step in the outermost plan; for a segment, the step of its first action
};

struct CudaProgram {
  std::vector<CudaNode> nodes;
};

// A loop that is not unrolled: it is too long, or its length or condition is only known at run time. Each state of the
// loop has a fixed address. The body reads the state at this address. After each iteration, the new value of the state
// is copied to the address.
struct CudaLoop {
  struct Stacked {
    uint64_t from = 0, to = 0;
    size_t slice = 0;
  };
  std::optional<int64_t> trip;  // the trip count if known; otherwise it is read from address `trip_at`
  uint64_t trip_at = 0;
  std::optional<bool> first;  // the condition before the first iteration if known; otherwise it is read from `first_at`
  uint64_t first_at = 0;
  bool always = false;  // True if the body's condition is always true; else it is read from `again_at`.
  uint64_t again_at = 0;
  int64_t bound = -1;  // the plan's limit on the number of iterations; -1: no limit
  uint64_t iteration_at = 0;
  CudaProgram body;
  std::vector<CudaCopy> begin, next, end;  // copies of states before the loop, after each iteration, after the loop
  std::vector<Stacked> stacked;            // copied after each iteration, before the states
};

struct CudaBranch {
  uint64_t condition_at = 0;
  CudaProgram then_body, else_body;
};

// The result of bind(): a plan's program, and the locations of the plan's outputs and buffers.
struct CudaBinding {
  CudaProgram program;
  std::vector<CudaValue> outputs, buffers;  // by number in the plan
};
// Binds a plan to `memory`. If `delivers`, outputs that alias inputs, constants or other outputs are also copied to
// separate memory. Throws kOutOfMemory and kDevice.
CudaBinding bind(const Plan& plan, CudaMemory& memory, bool delivers = false);

}  // namespace heddle::runtime
