#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "profile/gpu/collector.h"
#include "runtime/executor.h"

namespace heddle::driver {

// What the outermost steps of a plan take in a run, in nanoseconds, on average over `runs`.
struct StepTimes {
  struct Slice {
    size_t step = 0;
    int64_t start = 0, duration = 0;  // from the beginning of the run
  };
  std::vector<int64_t> steps;
  int64_t rest = 0;  // of a run, in no step
  int64_t runs = 0;
  double waiting = 0;          // Contention::waiting() of the runs on a CPU
  std::vector<Slice> one_run;  // by records: one of the median length
  // Where the device's own records are known: `steps` has each instant once, for what began first.
  std::vector<int64_t> kernels;   // by step: of its kernels, as recorded; empty: not known
  std::vector<int64_t> launches;  // by step: of kernels; empty: not known
  bool by_order = false;          // CUPTI did not tell graphs' nodes apart
};

StepTimes time_on_cpu(const runtime::Executor& executor, const std::vector<Tensor>& inputs, double seconds);

// By events between the steps, which take time themselves and let no kernel begin early: medians.
StepTimes time_by_events(const runtime::Executor& executor, const std::vector<Tensor>& inputs);

// The context for GpuCollector: the step that a thread enqueues or captures, from 1.
uint64_t step_context();

// By the records of the runs that have all of them. The executor was made behind the collector's start, which has
// step_context(). Throws kDevice where no run is complete.
StepTimes time_by_records(const runtime::Executor& executor, const std::vector<Tensor>& inputs,
                          profile::GpuCollector& collector);

// Gives the work of graphs in a run the steps that it has in another run without graphs, in order of start. False where
// the two differ in number or names of kernels.
bool tie_by_order(std::vector<profile::GpuOperation>& run, const std::vector<profile::GpuOperation>& without_graphs);

// The same from records: those of each run, in order of start.
StepTimes times_of(const std::vector<std::vector<profile::GpuOperation>>& runs, size_t steps);

}  // namespace heddle::driver
