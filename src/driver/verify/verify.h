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
  // Above 0: the output is outside its bound, so the effect of rounding on this model with these inputs was measured
  // (ir/analysis/sensitivity.h). The value is relative to the output's root mean square. `comparison.ok` takes it into
  // account.
  double sensitivity = 0;
};

// The first group in plan order with a value outside its bound.
struct Divergence {
  size_t group = 0;
  ir::GroupKind kind = ir::GroupKind::kReference;
  std::string label;    // of its last step
  std::string origins;  // the model's nodes
  ir::TensorType type;  // of the value
  ir::Comparison comparison;
};

struct VerifyReport {
  bool ok = true;
  std::vector<PortInfo> inputs;  // with the shapes that were used
  std::string branch_guess;      // random_inputs.h
  std::vector<OutputCheck> outputs;
  std::optional<Divergence> first;  // set if not ok; absent if every group is within its bound
  double run_seconds = 0, reference_seconds = 0;
  double waiting = 0;  // Contention::waiting() of both
  int threads = 1;
};

// Compiles the model, runs it once, and compares its outputs with the float64 evaluation of the imported graph before
// any pass. Missing inputs are random with `seed`. If an output is outside its bound, the model's sensitivity to
// rounding is measured and allowed for. If it is still outside, the values that leave each group are compared with
// those of the optimised graph to find the first group that diverges.
// Throws kInvalidArgument for a plan file, which has no graph.
VerifyReport verify(const std::string& path, const CompileOptions& options, std::map<std::string, Tensor> inputs,
                    uint64_t seed);

}  // namespace heddle::driver
