#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "profile/gpu/collector.h"
#include "runtime/executor.h"

namespace heddle::driver {

// Times of the outermost steps of a plan in one run, in nanoseconds, averaged over `runs`.
struct StepTimes {
  struct Slice {
    size_t step = 0;
    int64_t start = 0, duration = 0;  // from the beginning of the run
  };
  std::vector<int64_t> steps;
  int64_t rest = 0;  // time of a run outside of all steps
  int64_t runs = 0;
  double waiting = 0;          // Contention::waiting() of the runs on a CPU
  std::vector<Slice> one_run;  // time_by_records(): a run of median length
  // If the device's records are known: `steps` counts each instant once, for the step that began first.
  std::vector<int64_t> kernels;   // by step: recorded time of its kernels; empty: not known
  std::vector<int64_t> launches;  // by step: number of kernel launches; empty: not known
  bool by_order = false;          // CUPTI did not distinguish the nodes of graphs
};

StepTimes time_on_cpu(const runtime::Executor& executor, const std::vector<Tensor>& inputs, double seconds);

// Measures with events between the steps; returns medians. Events take time themselves and prevent kernels from
// starting early.
StepTimes time_by_events(const runtime::Executor& executor, const std::vector<Tensor>& inputs);

// The context for GpuCollector: the step that the calling thread enqueues or captures, from 1.
uint64_t step_context();

// Measures with the records of all complete runs. The executor must be made after the collector starts, and the
// collector must use step_context(). Throws kDevice if no run is complete.
StepTimes time_by_records(const runtime::Executor& executor, const std::vector<Tensor>& inputs,
                          profile::GpuCollector& collector);

// Assigns the operations of a CUDA-graph run to plan steps by matching them, in start order, with a run without graphs.
// Returns false if the runs differ in the number or names of operations.
bool tie_by_order(std::vector<profile::GpuOperation>& run, const std::vector<profile::GpuOperation>& without_graphs);

// The times from records: the operations of each run, in start order.
StepTimes times_of(const std::vector<std::vector<profile::GpuOperation>>& runs, size_t steps);

}  // namespace heddle::driver
