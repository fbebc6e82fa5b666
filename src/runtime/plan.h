#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "heddle/tensor.h"

namespace heddle::runtime {

// Where a buffer lives while a plan runs.
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

// A node that runs through the reference library: the IR text of a one-group graph, evaluated by the interpreter that
// the driver installs (runtime/interpreter.h). `parameters` are its inputs, `results` its outputs.
struct ReferenceStep {
  std::string ir;
  std::vector<uint32_t> parameters, results;
};

struct CopyStep {
  uint32_t from, to;
};

struct Plan;

// A counted or conditional loop (docs/design/ir.md, `loop`) or a branch; bodies are plans with their own buffers, run
// in an arena nested in the outer one.
struct LoopStep {
  std::shared_ptr<const Plan> body;
  uint32_t trip = 0, condition = 0;
  std::vector<uint32_t> states, invariants;  // inputs after iteration and condition
  std::vector<uint32_t> final_states, stacked;
  int64_t trip_bound = -1;  // static bound; -1: none
};
struct BranchStep {
  std::shared_ptr<const Plan> then_body, else_body;
  uint32_t condition = 0;
  std::vector<uint32_t> captured, results;
};

struct Step {
  std::variant<KernelStep, ReferenceStep, CopyStep, LoopStep, BranchStep> action;
  std::string label;   // "stitch: layer_norm ...", for tables
  std::string origin;  // the model's nodes, joined
  double floor_seconds = 0;
};

struct Port {
  std::string name;
  DType dtype;
  Shape shape;
  uint32_t buffer;
};

// A compiled model for fixed input shapes: pure data, immutable, shared by any number of concurrent runs.
struct Plan {
  std::string model;   // name of the model
  std::string target;  // Target::fingerprint() it was made for
  std::vector<Port> inputs, outputs;
  std::vector<Buffer> buffers;
  std::vector<Tensor> constants;  // in the layout that kernels want
  std::vector<Step> steps;
  int64_t arena_bytes = 0;
  std::string library;  // bytes of the shared object with all kernels (empty: no kernels, or in the outer plan)
};

}  // namespace heddle::runtime
