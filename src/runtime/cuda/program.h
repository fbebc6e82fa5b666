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

// A plan bound to the memory of one run: what goes onto a stream with every address filled in, and what the host does
// between. Loops of known length are unrolled into it.

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

  // `behind_kernel`: what is enqueued just before is a kernel's launch, too, so that this one may begin early.
  void enqueue(const CudaContext& context, CudaDriver::Handle stream, bool behind_kernel = false) const;
};
void enqueue(const CudaContext& context, const CudaCopy& copy, CudaDriver::Handle stream);

// Puts them onto a stream in order; kernels that may begin early do.
void enqueue_actions(const CudaContext& context, std::span<const CudaAction> actions, CudaDriver::Handle stream);

// Consecutive actions, captured as one graph.
struct CudaSegment {
  std::vector<CudaAction> actions;
  std::unique_ptr<CudaGraph> graph;
};

// Where a value is: on the device, on the host, or both.
struct CudaValue {
  uint64_t device = 0;
  const Tensor* constant = nullptr;  // on the host; on the device when it is asked for
  const void* known = nullptr;       // another host copy that never changes
  int input = -1;                    // of the caller; on the device when it is asked for

  const void* host() const { return constant != nullptr ? constant->data() : known; }
};

// A reference step: parameters come to the host, results go to the device.
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

// A loop whose length or condition only a run can tell, or that is too long to unroll. States keep one place: the body
// reads it, and what it made is copied there.
struct CudaLoop {
  struct Stacked {
    uint64_t from = 0, to = 0;
    size_t slice = 0;
  };
  std::optional<int64_t> trip;  // known; else `trip_at`
  uint64_t trip_at = 0;
  std::optional<bool> first;  // known condition before the first iteration; else `first_at`
  uint64_t first_at = 0;
  bool always = false;  // the body's condition is true; else `again_at` says so after each iteration
  uint64_t again_at = 0;
  int64_t bound = -1;  // of the plan
  uint64_t iteration_at = 0;
  CudaProgram body;
  std::vector<CudaCopy> begin, next, end;  // of states
  std::vector<Stacked> stacked;            // copied before the states
};

struct CudaBranch {
  uint64_t condition_at = 0;
  CudaProgram then_body, else_body;
};

// The program of a plan in `memory`, and where its outputs are. Throws kOutOfMemory, kDevice.
struct CudaBinding {
  CudaProgram program;
  std::vector<CudaValue> outputs, buffers;  // of the plan
};
// `delivers`: outputs that are inputs, constants or one another are copied to their own places, too.
CudaBinding bind(const Plan& plan, CudaMemory& memory, bool delivers = false);

}  // namespace heddle::runtime
