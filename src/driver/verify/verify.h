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
  // Above 0: the output is outside its bound, so what rounding does to this model on these inputs was measured
  // (ir/analysis/sensitivity.h), relative to the output's root mean square; `comparison.ok` takes it into account.
  double sensitivity = 0;
};

// The first group, in the order of the plan, one of whose values is outside its bound.
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
  std::vector<PortInfo> inputs;  // in the shapes that were taken
  std::string branch_guess;      // random_inputs.h
  std::vector<OutputCheck> outputs;
  std::optional<Divergence> first;  // when not ok; absent where every group is within its bound
  double run_seconds = 0, reference_seconds = 0;
  double waiting = 0;  // Contention::waiting() of both
  int threads = 1;
};

// Compiles the model, runs it once, and compares its outputs with the float64 evaluation of the graph as imported,
// before any pass. Inputs that are not given are random by `seed`. When an output is outside its bound, the model's own
// sensitivity to rounding is measured and allowed for; when it is outside still, the values that leave each group are
// compared with those of the optimised graph, which finds the first group that diverges.
// Throws kInvalidArgument for a plan file: it holds no graph.
VerifyReport verify(const std::string& path, const CompileOptions& options, std::map<std::string, Tensor> inputs,
                    uint64_t seed);

}  // namespace heddle::driver
