#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/group.h"
#include "schedule/kernel_desc.h"
#include "schedule/scheme.h"
#include "target/cuda_launch.h"

namespace heddle::driver {

// The decisions of compiling a model, as data for `explain` and for the progress display.
struct StageTime {
  std::string stage;  // "import", "pass canonicalize", "kernels", ...
  double seconds = 0;
};

// A buffer of a kernel, in the order in which its text counts them.
struct OperandReport {
  std::string name;  // of the value in the model, or of the node that makes it; "" if the model has none
  bool output = false, constant = false;
  DType dtype = DType::kF32;
  Shape shape;
  std::string packing;  // "" dense
};

struct KernelReport {
  std::string label, symbol;
  std::string family, reason;  // of the configuration
  bool moves_memory = false;   // a product of few rows or a pooling, which memory limits
  int64_t tasks = 1;
  double floor_seconds = 0;
  schedule::StitchFacts stitch;      // of the kernels of stitch groups
  double measured_seconds = 0;       // 0: not measured
  std::vector<CudaLaunch> launches;  // on a GPU, in place of tasks
  std::string config;                // the configuration in short; "" where there is no choice
  std::vector<std::string> texts;    // symbols in the KernelSet: its own, then those of what it calls or launches
  std::vector<OperandReport> operands;
  schedule::KernelDesc desc;  // as emitted, so that it can be emitted with other names
  schedule::Config configuration;
  bool has_arguments = false;  // the text takes numbers as arguments and is shared with other kernels
};

struct GroupReport {
  ir::GroupKind kind = ir::GroupKind::kReference;
  int depth = 0;  // 0: the model; 1: the body of a loop; ...
  size_t nodes = 0;
  std::string ops;      // the primitives in order, repeated ones counted
  std::string origins;  // the model's nodes
  std::vector<KernelReport> kernels;
  std::vector<std::string> notes;  // schemes and why
  std::string fallback;            // why it runs through the reference evaluator; "" if it does not
  bool view = false;               // needs no kernel
  // Bytes of intermediate values that stay inside the group: each would be written once and read at least once.
  int64_t bytes_inside = 0;
  double compulsory_bytes = 0;                 // of a stitch group: each outside value read or written once
  std::vector<schedule::Boundary> boundaries;  // between kernels of a stitch group
  int64_t trips = 1;                           // of a loop: the most iterations of its body
  double measured_seconds = 0;                 // of a loop or branch; 0: not measured
};

// An output that shares the memory of an input.
struct AliasReport {
  std::string output, input;
  int64_t bytes = 0;
  std::string why_copied;  // why its bytes are still copied; "": they are not
};

// The requested options.
struct Asked {
  std::string target = "cpu", precision = "f32";
  int threads = 0;
};

struct CompileReport {
  std::string model, target;
  Asked asked;
  bool takes_tuned = true;  // configurations that `heddle tune` found
  int threads = 1;          // of a CPU
  int sms = 0;              // of a GPU
  double waiting = 0;       // Contention::waiting() while kernels were measured on a CPU
  std::vector<StageTime> stages;
  size_t nodes_imported = 0, nodes_optimised = 0;
  size_t model_nodes = 0;  // distinct origins: the kernels of a runtime that runs node by node
  size_t distinct_kernels = 0;
  std::vector<GroupReport> groups;
  std::vector<ir::Decision> decisions;
  std::vector<AliasReport> aliases;
  int64_t arena_bytes = 0, constant_bytes = 0;
  bool has_guess = false;            // extents were guessed, as the first remark says
  std::vector<std::string> remarks;  // assumed dimensions and the like
  bool library_from_cache = false;
  size_t contractions = 0, tuned = 0;  // distinct problems with a choice; those with a measured choice
};

}  // namespace heddle::driver
