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

// The memory of a buffer while a plan runs.
enum class Place : uint8_t {
  kArena,     // at `offset` of the arena of one run
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
  std::string name;  // for dumps and verify
};

// Runs tasks [0, tasks) of a compiled kernel over the pool.
struct KernelStep {
  std::string symbol;
  std::vector<uint32_t> operands;  // buffers
  int64_t tasks = 1;
  int64_t scratch_bytes = 0;  // per thread
};

// Launches on a GPU, in order. Their operand numbers index `operands`, followed by the run's counters: `counter_bytes`
// bytes that are zero before and after the step.
struct CudaStep {
  std::vector<CudaLaunch> launches;
  std::vector<uint32_t> operands;  // buffers
  int64_t counter_bytes = 0;
};

// A node evaluated by the reference library. `ir` is the text of a one-group graph for the interpreter that the driver
// installs (runtime/interpreter.h). `parameters` are its inputs, `results` its outputs.
struct ReferenceStep {
  std::string ir;
  std::vector<uint32_t> parameters, results;
};

struct CopyStep {
  uint32_t from, to;
};

struct Plan;

// A counted or conditional loop (docs/design/ir.md, `loop`) or a branch; bodies are plans with their own buffers, run
// in an arena nested in the outer one: `workspace` is an arena buffer of workspace_bytes(step).
//
// An output port of a body names the buffer that holds the value when the body ends: the kOutput buffer of that port,
// that of another port (a state that is also stacked), an input or a constant; never an arena buffer, which the next
// iteration overwrites. A state that is another state's input is copied to its own kOutput buffer. Under these rules
// states pass between iterations by pointer.
struct LoopStep {
  std::shared_ptr<const Plan> body;
  uint32_t workspace = 0;
  uint32_t trip = 0, condition = 0;
  std::vector<uint32_t> states, invariants;  // inputs after iteration and condition
  std::vector<uint32_t> final_states, stacked;
  int64_t trip_bound = -1;  // static bound; -1: none
};
struct BranchStep {
  std::shared_ptr<const Plan> then_body, else_body;
  uint32_t workspace = 0;
  uint32_t condition = 0;
  std::vector<uint32_t> captured, results;
};

struct Step {
  std::variant<KernelStep, ReferenceStep, CopyStep, LoopStep, BranchStep, CudaStep> action;
  std::string label;   // "stitch: layer_norm ...", for tables
  std::string origin;  // names of the model's nodes, joined
  double floor_seconds = 0;
};

struct Port {
  std::string name;
  DType dtype;
  Shape shape;
  uint32_t buffer;
  int64_t index_bound = 0;                   // if the input indexes tables: the smallest extent of these; 0: unknown
  std::optional<int64_t> branch_value = {};  // if it decides branches (one integer or bool): its value in made-up runs
};

// An input that decided shapes when the model was compiled: a run must pass this value.
struct FixedInput {
  uint32_t input;  // position in Plan::inputs
  Tensor value;
};

// An output that may share the memory of an input. Its kOutput buffer then is the input's memory: steps before the one
// that writes the output still read the input there. If a run gets other memory for the output and the steps write only
// a part of it (`partial`), the run begins by copying the input there.
struct Alias {
  uint32_t output, input;  // positions in Plan::outputs and Plan::inputs
  bool partial = true;
};

// A text input or output, which no step reads or writes. The plan was compiled for one value of a text input: a run
// must pass the same. The value of a text output does not depend on the numeric inputs.
struct Text {
  uint32_t position;  // among the model's inputs or outputs that the plan keeps
  std::string name;
  Tensor value;
};

// An input with a default, which is a constant in the plan unless it is one of Plan::inputs.
struct DefaultInput {
  std::string name;
  DType dtype;
  Shape shape;  // of the default
};

// Machine code of a GPU and the kernels in it.
struct Cubin {
  std::string bytes;
  std::vector<std::string> symbols;
};

inline constexpr int kMaxDepth = 32;  // nesting of loops and branches

// A compiled model for fixed input shapes: pure data, immutable, shared by any number of concurrent runs.
struct Plan {
  std::string model;   // name of the model
  std::string target;  // Target::fingerprint() it was made for
  Hash128 key;         // hash of its sources: model, options, build of Heddle, tuned winners; 0: unknown
  std::vector<Port> inputs, outputs;
  std::vector<FixedInput> fixed;
  std::vector<Text> text_inputs, texts;  // texts: outputs
  std::vector<DefaultInput> defaults;
  std::vector<Alias> aliases;
  std::vector<Buffer> buffers;
  std::vector<Tensor> constants;  // in the layout that kernels expect
  std::vector<Step> steps;
  int64_t arena_bytes = 0;
  // Kernels. Empty in the bodies of a plan, whose kernels are in the outer plan.
  std::string library;        // CPU: a shared object with all kernels
  std::vector<Cubin> cubins;  // GPU: one per compiled unit
};

using Libraries = std::vector<std::shared_ptr<const jit::Library>>;

// Arena offsets are multiples of this: one AVX-512 register, one cache line.
inline constexpr int64_t kAlignment = 64;
inline int64_t aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Bytes of a dense tensor; -1 for an unknown type, a negative extent or an overflow.
int64_t dense_bytes(DType dtype, const Shape& shape);

// Offsets in a loop's workspace: the iteration number, the two conditions, one spare buffer per state, the body's
// arena.
struct LoopLayout {
  int64_t iteration = 0, condition_in = 0, condition_out = 0;
  std::vector<int64_t> spare;
  int64_t arena = 0, bytes = 0;
};
LoopLayout layout_of(const LoopStep& step);
int64_t workspace_bytes(const LoopStep& step);
int64_t workspace_bytes(const BranchStep& step);

// The input whose memory an output may share; -1: none.
int64_t alias_of(const Plan& plan, size_t output);

// Checks that every index, size and offset of a plan and its bodies is in range, so that a run cannot touch memory
// outside its buffers, provided that its kernels keep their contract. Throws kDamagedArtefact.
void validate(const Plan& plan);

}  // namespace heddle::runtime
