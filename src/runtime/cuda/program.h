#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "runtime/cuda/code.h"
#include "runtime/cuda/launch.h"

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
};

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

// Device memory of one run.
class CudaMemory {
 public:
  CudaMemory(CudaCode& code, const Plan& plan);

  CudaCode& code() const { return code_; }
  uint64_t arena() const { return arena_.address(); }
  uint64_t counters() const { return counters_.address(); }
  uint64_t input(size_t port);                // made when it is asked for
  uint64_t output(size_t port);               // the same
  uint64_t extra(size_t bytes);               // for the rest of the state's life
  uint64_t iteration_number(int64_t number);  // where an i64 of this value lies; below kMostUnrolled
  const int64_t* known_number(int64_t number) const { return numbers_host_.data() + 2 * number; }
  uint64_t one();  // a byte that is 1
  bool has_input(size_t port) const { return inputs_[port] != nullptr; }
  size_t bytes() const;  // of all

  static constexpr int64_t kMostUnrolled = 4096;

 private:
  void make_numbers();

  CudaCode& code_;
  const Plan& plan_;
  CudaBuffer arena_, counters_;
  std::vector<std::unique_ptr<CudaBuffer>> inputs_, outputs_, extras_;
  std::unique_ptr<CudaBuffer> numbers_;
  std::vector<int64_t> numbers_host_;
};

// The program of a plan, and where its outputs are. Throws kOutOfMemory, kDevice.
struct CudaBinding {
  CudaProgram program;
  std::vector<CudaValue> outputs, buffers;  // of the plan
};
CudaBinding bind(const Plan& plan, CudaMemory& memory);

}  // namespace heddle::runtime
