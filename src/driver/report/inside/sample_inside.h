#pragma once

#include <functional>
#include <string>
#include <vector>

#include "driver/compile/compile.h"

namespace heddle::driver {

// What the nodes of fused kernels take of their time on a CPU, from samples of the program counter.
struct InsideShares {
  // By step of the plan: shares by node of the step's group, which sum to 1. Empty where there are too few samples, or
  // where it is not known of which node a line is.
  std::vector<std::vector<double>> by_step;
  size_t fused = 0;          // steps whose kernel is of several nodes
  size_t samples = 0;        // in these kernels
  size_t dropped = 0;        // of all, that the device had no room for
  std::string why_none;      // why there are no samples; "": there are, or there was nothing to divide
  std::string fact() const;  // for the head of a profile
};

// Runs the plan once, telling the step that comes next before it begins; -1 between runs.
using RunSteps = std::function<void(const std::function<void(int64_t step)>& next)>;

// Compiles the kernels of a model for a CPU once more, with tables of lines (g++ -g1), and runs the plan's own for
// `seconds` with a sampler beside them: `run` once and again. The tables hold for the plan's kernels as the machine
// code is equal; where it is not, there are no shares. Throws what `run` throws.
InsideShares sample_inside(const CompiledModel& model, const Target& target, double seconds, const RunSteps& run);

}  // namespace heddle::driver
