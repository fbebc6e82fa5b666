#pragma once

#include <functional>
#include <string>
#include <vector>

#include "driver/compile/compile.h"

namespace heddle::driver {

// How the time of fused kernels is divided among their nodes, estimated from samples of the program counter.
struct InsideShares {
  // For each step of the plan: the fraction of time of each node in the step's group. The fractions sum to 1. Empty
  // if there are too few samples, or if the nodes of the source lines are unknown.
  std::vector<std::vector<double>> by_step;
  size_t fused = 0;          // steps whose kernel computes several nodes
  size_t samples = 0;        // samples in these kernels
  size_t dropped = 0;        // samples of any kernel that were lost because the device's buffer was full
  std::string why_none;      // why there are no samples; "": there are some, or no kernel is fused
  std::string fact() const;  // for the head of a profile
};

// Runs the plan once. Calls `next` with the index of each step before the step begins, and with -1 after the last.
using RunSteps = std::function<void(const std::function<void(int64_t step)>& next)>;

// Recompiles the model's CPU kernels with line tables (g++ -g1). Then calls `run` repeatedly for `seconds`, while a
// sampler is active; `run` executes the plan's original kernels. The line tables apply to the original kernels only if
// the recompiled kernels have the same machine code. Otherwise the result has no shares, and why_none gives the reason.
// Throws what `run` throws.
InsideShares sample_inside(const CompiledModel& model, const Target& target, double seconds, const RunSteps& run);

}  // namespace heddle::driver
