#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/group.h"
#include "passes/quantized/quantized_products.h"
#include "schedule/kernel_desc.h"
#include "schedule/scheme.h"
#include "target/cuda_launch.h"

namespace heddle::driver {

// The time of one step of compilation. The structs of this file are the data for `explain` and for the progress
// display: the decisions made while compiling a model.
struct StageTime {
  std::string stage;  // "import", "pass canonicalize", "kernels", ...
  double seconds = 0;
};

// A buffer that a kernel accesses. Reports list buffers in the order of the kernel's parameters.
struct OperandReport {
  std::string name;  // of the value in the model, or of the node that computes it; "" if the model has no name
  bool output = false, constant = false;
  DType dtype = DType::kF32;
  Shape shape;
  std::string packing;  // "": dense
};

struct KernelReport {
  std::string label, symbol;
  std::string family, reason;  // of the configuration
  bool moves_memory = false;   // a memory-bound product of few rows or a memory-bound pooling
  int64_t tasks = 1;
  double floor_seconds = 0;
  schedule::StitchFacts stitch;      // for kernels of stitch groups
  double measured_seconds = 0;       // 0: not measured
  std::vector<CudaLaunch> launches;  // on a GPU, instead of tasks
  std::string config;                // the configuration in short; "" if there is no choice
  std::vector<std::string> texts;    // symbols in the KernelSet: the kernel's own, then those that it calls or launches
  std::vector<OperandReport> operands;
  schedule::KernelDesc desc;  // as emitted, for emitting it again with other names
  schedule::Config configuration;
  bool has_arguments = false;  // some numbers are arguments instead of literals, so that kernels can share the text
};

struct GroupReport {
  ir::GroupKind kind = ir::GroupKind::kReference;
  int depth = 0;  // 0: the model; 1: the body of a loop; ...
  size_t nodes = 0;
  std::string ops;      // the primitives in order, with a count for repeated ones
  std::string origins;  // the model's nodes
  std::vector<KernelReport> kernels;
  std::vector<std::string> notes;  // the schemes used, and why
  std::string fallback;            // why the reference evaluator runs the group; "" if it does not
  bool view = false;               // needs no kernel
  // The bytes of intermediate values that stay inside the group. Without fusion, each value would be written once and
  // read at least once.
  int64_t bytes_inside = 0;
  double compulsory_bytes = 0;                 // for a stitch group: each outside value is read or written once
  std::vector<schedule::Boundary> boundaries;  // between kernels of a stitch group
  int64_t trips = 1;                           // for a loop: the maximum number of iterations
  double measured_seconds = 0;                 // for a loop or branch; 0: not measured
};

// An output that shares the memory of an input.
struct AliasReport {
  std::string output, input;
  int64_t bytes = 0;
  std::string why_copied;  // why its bytes are copied nevertheless; "": they are not copied
};

// The requested options.
struct Asked {
  std::string target = "cpu", precision = "f32";
  int threads = 0;
};

struct CompileReport {
  std::string model, target;
  Asked asked;
  bool takes_tuned = true;  // use configurations that `heddle tune` found
  int threads = 1;          // of a CPU
  int sms = 0;              // of a GPU
  double waiting = 0;       // Contention::waiting() while kernels were measured on a CPU
  std::vector<StageTime> stages;
  size_t nodes_imported = 0, nodes_optimised = 0;
  size_t model_nodes = 0;  // distinct origins: the number of kernels in a runtime that runs node by node
  size_t distinct_kernels = 0;
  std::vector<GroupReport> groups;
  std::vector<ir::Decision> decisions;
  passes::QuantisedProducts quantised;
  std::vector<AliasReport> aliases;
  int64_t arena_bytes = 0, constant_bytes = 0;
  bool has_guess = false;            // some extents were guessed; the first remark says so
  std::vector<std::string> remarks;  // assumed dimensions and other remarks
  bool library_from_cache = false;
  size_t contractions = 0, tuned = 0;  // distinct problems that have a choice; those whose choice was measured
};

}  // namespace heddle::driver
