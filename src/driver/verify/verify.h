#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "heddle/model.h"
#include "ir/analysis/tolerance.h"
#include "ir/graph.h"
#include "ir/group.h"

namespace heddle::driver {

struct OutputCheck {
  std::string name;
  ir::TensorType type;
  ir::Comparison comparison;
  // The measured effect of rounding on this output, with these inputs (ir/analysis/sensitivity.h), relative to the
  // output's root mean square. Measured only for an output outside its bound; otherwise 0. `comparison.ok` takes the
  // sensitivity into account.
  double sensitivity = 0;
};

// The first group, in plan order, that computes a value outside the value's bound.
struct Divergence {
  size_t group = 0;
  ir::GroupKind kind = ir::GroupKind::kReference;
  std::string label;    // of the group's last step
  std::string origins;  // the model nodes of the group
  ir::TensorType type;  // of the value outside its bound
  ir::Comparison comparison;
};

struct VerifyReport {
  bool ok = true;
  std::vector<PortInfo> inputs;  // with the concrete shapes of this run
  std::string branch_guess;      // the result of branch_guess() (random_inputs.h)
  std::vector<OutputCheck> outputs;
  std::optional<Divergence> first;  // set if not ok and some group is outside its bound
  double run_seconds = 0, reference_seconds = 0;
  double waiting = 0;  // Contention::waiting() during run_seconds and reference_seconds
  int threads = 1;
};

// Compiles the model, runs it once, and compares its outputs with a float64 evaluation of the imported, unoptimised
// graph. Inputs that are not given are random with `seed`. If an output is outside its bound, the model's sensitivity
// to rounding is measured and added to the bound. If the output is still outside, the outputs of each group are
// compared with those of an evaluation of the optimised graph, to find the first group that diverges. Throws
// kInvalidArgument for a plan file, which has no graph.
VerifyReport verify(const std::string& path, const CompileOptions& options, std::map<std::string, Tensor> inputs,
                    uint64_t seed);

}  // namespace heddle::driver
