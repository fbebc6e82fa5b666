#pragma once

#include <functional>
#include <string>
#include <vector>

#include "driver/compile/compile.h"

namespace heddle::driver {

// The shares that nodes have in the time of their fused kernels on a CPU, from samples of the program counter.
struct InsideShares {
  // By step of the plan: shares by node of the step's group, which sum to 1. Empty if there are too few samples or if
  // the nodes of the lines are unknown.
  std::vector<std::vector<double>> by_step;
  size_t fused = 0;          // steps whose kernel is of several nodes
  size_t samples = 0;        // in these kernels
  size_t dropped = 0;        // of all samples, those that the device had no room for
  std::string why_none;      // why there are no samples; "": there are, or there was nothing to divide
  std::string fact() const;  // for the head of a profile
};

// Runs the plan once. It calls `next` with each step before the step begins, and with -1 between runs.
using RunSteps = std::function<void(const std::function<void(int64_t step)>& next)>;

// Compiles the kernels of a model for a CPU again, with line tables (g++ -g1). Then it calls `run`, which runs the
// plan's own kernels, repeatedly for `seconds` while a sampler is active. The tables are valid for the plan's kernels
// if the machine code is equal; otherwise there are no shares. Throws what `run` throws.
InsideShares sample_inside(const CompiledModel& model, const Target& target, double seconds, const RunSteps& run);

}  // namespace heddle::driver
