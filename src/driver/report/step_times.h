#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "profile/gpu/collector.h"
#include "runtime/executor.h"

namespace heddle::driver {

// Times of the outermost steps of a plan in one run, in nanoseconds, averaged over `runs` runs.
struct StepTimes {
  struct Slice {
    size_t step = 0;
    int64_t start = 0, duration = 0;  // start: relative to the beginning of the run
  };
  std::vector<int64_t> steps;
  int64_t rest = 0;  // time of a run that is outside all steps
  int64_t runs = 0;
  double waiting = 0;          // Contention::waiting() during the runs (CPU only)
  std::vector<Slice> one_run;  // from time_by_records(): the slices of a run of median length
  // The following fields need the device's records. If there are records, the times in `steps` do not overlap: an
  // instant at which several steps run counts only for the step that began first.
  std::vector<int64_t> kernels;   // for each step: recorded time of its kernels; empty: unknown
  std::vector<int64_t> launches;  // for each step: number of kernel launches; empty: unknown
  bool by_order = false;          // operations were matched by order: CUPTI did not distinguish the nodes of graphs
};

StepTimes time_on_cpu(const runtime::Executor& executor, const std::vector<Tensor>& inputs, double seconds);

// Measures with events between the steps and returns medians. The events take time themselves, and they prevent kernels
// from starting before the preceding kernel ends.
StepTimes time_by_events(const runtime::Executor& executor, const std::vector<Tensor>& inputs);

// The context callback for GpuCollector. Returns the step, counted from 1, that the calling thread is enqueuing or
// capturing.
uint64_t step_context();

// Measures with the records of all complete runs. The executor must be created after the collector starts, and the
// collector must use step_context(). Throws kDevice if no run is complete.
StepTimes time_by_records(const runtime::Executor& executor, const std::vector<Tensor>& inputs,
                          profile::GpuCollector& collector);

// Assigns the operations of a CUDA-graph run to plan steps by matching them, in start order, with the operations of a
// run without graphs. Returns false if the runs differ in the number or names of operations.
bool tie_by_order(std::vector<profile::GpuOperation>& run, const std::vector<profile::GpuOperation>& without_graphs);

// Computes the times from records. `runs` has the operations of each run, in start order.
StepTimes times_of(const std::vector<std::vector<profile::GpuOperation>>& runs, size_t steps);

}  // namespace heddle::driver
