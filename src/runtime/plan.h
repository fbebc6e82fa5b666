#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/hash.h"
#include "heddle/tensor.h"
#include "jit/library.h"
#include "target/cuda_launch.h"

namespace heddle::runtime {

// The memory in which a buffer is located while a plan runs.
enum class Place : uint8_t {
  kArena,     // at `offset` in the arena of the run
  kConstant,  // Plan::constants[index], shared by all runs
  kInput,     // the caller's tensor `index`
  kOutput,    // the result tensor `index`
};

struct Buffer {
  Place place = Place::kArena;
  uint32_t index = 0;
  int64_t offset = 0;
  DType dtype = DType::kF32;
  Shape shape;
  int64_t bytes = 0;
  std::string name;  // for dumps and `verify`
};

// Runs tasks [0, tasks) of a compiled CPU kernel on the thread pool.
struct KernelStep {
  std::string symbol;
  std::vector<uint32_t> operands;  // indices into Plan::buffers
  int64_t tasks = 1;
  int64_t scratch_bytes = 0;  // per thread
};

// A sequence of GPU launches. Operand numbers in a launch are indices into `operands`; the number operands.size()
// refers to the run's counters. The counters are `counter_bytes` bytes that are zero before and after the step.
struct CudaStep {
  std::vector<CudaLaunch> launches;
  std::vector<uint32_t> operands;  // indices into Plan::buffers
  int64_t counter_bytes = 0;
};

// A node that the reference library evaluates. `ir` is the text of a one-group graph, which the interpreter that the
// driver installs (runtime/interpreter.h) evaluates. `parameters` are the graph's inputs, `results` its outputs.
struct ReferenceStep {
  std::string ir;
  std::vector<uint32_t> parameters, results;
};

struct CopyStep {
  uint32_t from, to;
};

struct Plan;

// LoopStep is a counted or conditional loop (docs/design/ir.md, `loop`), BranchStep a branch. Their bodies are plans
// with their own buffers. A body runs in an arena nested in the outer arena: `workspace` is an arena buffer of
// workspace_bytes(step) bytes.
//
// An output port of a body refers to the buffer that holds the value when the body ends. This buffer is one of:
//   - the kOutput buffer of that port,
//   - the kOutput buffer of another port (for a state that is also stacked),
//   - an input,
//   - a constant.
// It is never an arena buffer, because the next iteration overwrites the arena. If a state's new value is the input of
// another state, it is copied to its own kOutput buffer. These rules allow states to be passed between iterations by
// pointer.
struct LoopStep {
  std::shared_ptr<const Plan> body;
  uint32_t workspace = 0;
  uint32_t trip = 0, condition = 0;
  std::vector<uint32_t> states, invariants;  // the body's inputs after the iteration number and the condition
  std::vector<uint32_t> final_states, stacked;
  int64_t trip_bound = -1;  // static bound on the number of iterations; -1: none
};
struct BranchStep {
  std::shared_ptr<const Plan> then_body, else_body;
  uint32_t workspace = 0;
  uint32_t condition = 0;
  std::vector<uint32_t> captured, results;
};

struct Step {
  std::variant<KernelStep, ReferenceStep, CopyStep, LoopStep, BranchStep, CudaStep> action;
  std::string label;   // "stitch: layer_norm ...", shown in tables
  std::string origin;  // names of the model's nodes, joined into one string
  double floor_seconds = 0;
};

struct Port {
  std::string name;
  DType dtype;
  Shape shape;
  uint32_t buffer;
  int64_t index_bound = 0;                   // if the input holds indices: the smallest indexed extent; 0: unknown
  std::optional<int64_t> branch_value = {};  // for an input that decides branches: its value in runs on generated data
};

// An input whose value determined shapes when the model was compiled. A run must pass this value.
struct FixedInput {
  uint32_t input;  // index into Plan::inputs
  Tensor value;
};

// An output that may share the memory of an input. If it does, the output's kOutput buffer is the input's memory, and
// the steps before the one that writes the output still read the input from it. If a run passes separate memory for the
// output and the steps write only a part of the output (`partial`), the run first copies the input to the output.
struct Alias {
  uint32_t output, input;  // indices into Plan::outputs and Plan::inputs
  bool partial = true;
};

// A text input or output. No step reads or writes it. A plan is compiled for one value of each text input, and a run
// must pass this value. The value of a text output does not depend on the numeric inputs.
struct Text {
  uint32_t position;  // position among those inputs or outputs of the model that the plan keeps
  std::string name;
  Tensor value;
};

// An input with a default value. It is a constant in the plan unless it is one of Plan::inputs.
struct DefaultInput {
  std::string name;
  DType dtype;
  Shape shape;  // shape of the default value
};

// GPU machine code, and the names of the kernels in it.
struct Cubin {
  std::string bytes;
  std::vector<std::string> symbols;
};

inline constexpr int kMaxDepth = 32;  // maximum nesting depth of loops and branches

// A compiled model for fixed input shapes. It is pure, immutable data, and any number of concurrent runs may share it.
struct Plan {
  std::string model;   // name of the model
  std::string target;  // Target::fingerprint() of the target that it was compiled for
  Hash128 key;         // hash of the model, options, build of Heddle and tuned winners; 0: unknown
  std::vector<Port> inputs, outputs;
  std::vector<FixedInput> fixed;
  std::vector<Text> text_inputs, texts;  // `texts`: text outputs
  std::vector<DefaultInput> defaults;
  std::vector<Alias> aliases;
  std::vector<Buffer> buffers;
  std::vector<Tensor> constants;  // in the layouts that kernels expect
  std::vector<Step> steps;
  int64_t arena_bytes = 0;
  // Machine code of the kernels. Empty in the plans of bodies, whose kernels are in the outermost plan.
  std::string library;        // CPU: a shared object with all kernels
  std::vector<Cubin> cubins;  // GPU: one cubin per compiled unit
};

using Libraries = std::vector<std::shared_ptr<const jit::Library>>;

// Arena offsets are multiples of kAlignment bytes: the size of an AVX-512 register and of a cache line.
inline constexpr int64_t kAlignment = 64;
inline int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The size in bytes of a dense tensor; -1 for an unknown type, a negative extent or an overflow.
int64_t dense_bytes(DType dtype, const Shape& shape);

// Offsets in a loop's workspace: the iteration number, the two conditions, one spare buffer per state, and the body's
// arena. `bytes` is the total size.
struct LoopLayout {
  int64_t iteration = 0, condition_in = 0, condition_out = 0;
  std::vector<int64_t> spare;
  int64_t arena = 0, bytes = 0;
};
LoopLayout layout_of(const LoopStep& step);
int64_t workspace_bytes(const LoopStep& step);
int64_t workspace_bytes(const BranchStep& step);

// The bytes of the constants of a plan and of the bodies of its loops and branches.
int64_t constant_bytes(const Plan& plan);

// Returns the index of the input whose memory an output may share; -1 if there is none.
int64_t alias_of(const Plan& plan, size_t output);

// Checks that every index, size and offset in a plan and its bodies is in range. A run of a valid plan then accesses no
// memory outside its buffers, provided that its kernels keep their contract. Throws kDamagedArtefact.
void validate(const Plan& plan);

}  // namespace heddle::runtime
