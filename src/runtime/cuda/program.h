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

// A plan bound to the memory of one run: the work for a stream with every address filled in, and the steps of the host
// in between. Short loops of known length are unrolled.

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
  size_t step = 0;  // of the outermost plan

  // `behind_kernel`: the previous work on the stream is a kernel launch, so this kernel may begin before that one ends.
  void enqueue(const CudaContext& context, CudaDriver::Handle stream, bool behind_kernel = false) const;
};
void enqueue(const CudaContext& context, const CudaCopy& copy, CudaDriver::Handle stream);

// Enqueues the actions on a stream in order. Kernels that support it begin before the previous kernel ends.
void enqueue_actions(const CudaContext& context, std::span<const CudaAction> actions, CudaDriver::Handle stream);

// Consecutive actions, captured as one CUDA graph.
struct CudaSegment {
  std::vector<CudaAction> actions;
  std::unique_ptr<CudaGraph> graph;
};

// The location of a value: on the device, on the host, or both.
struct CudaValue {
  uint64_t device = 0;
  const Tensor* constant = nullptr;  // on the host; copied to the device on demand
  const void* known = nullptr;       // another host copy that never changes
  int input = -1;                    // port of the caller's input; on the device on demand

  const void* host() const { return constant != nullptr ? constant->data() : known; }
};

// A reference step. Its parameters are copied to the host and its results to the device.
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
  size_t step = 0;  // of the outermost plan; of a segment: of its first action
};

struct CudaProgram {
  std::vector<CudaNode> nodes;
};

// A loop that is too long to unroll, or whose length or condition is only known at run time. A state has one address:
// the body reads it there, and its new value is copied there.
struct CudaLoop {
  struct Stacked {
    uint64_t from = 0, to = 0;
    size_t slice = 0;
  };
  std::optional<int64_t> trip;  // known; else `trip_at`
  uint64_t trip_at = 0;
  std::optional<bool> first;  // known condition before the first iteration; else `first_at`
  uint64_t first_at = 0;
  bool always = false;  // the body's condition is always true; else read from `again_at` after each iteration
  uint64_t again_at = 0;
  int64_t bound = -1;  // most iterations, from the plan; -1: no bound
  uint64_t iteration_at = 0;
  CudaProgram body;
  std::vector<CudaCopy> begin, next, end;  // of states
  std::vector<Stacked> stacked;            // copied before the states
};

struct CudaBranch {
  uint64_t condition_at = 0;
  CudaProgram then_body, else_body;
};

// The program of a plan in `memory`, and the locations of its outputs. bind() throws kOutOfMemory, kDevice.
struct CudaBinding {
  CudaProgram program;
  std::vector<CudaValue> outputs, buffers;  // of the plan
};
// `delivers`: outputs that alias inputs, constants or other outputs are also copied to their own memory.
CudaBinding bind(const Plan& plan, CudaMemory& memory, bool delivers = false);

}  // namespace heddle::runtime
