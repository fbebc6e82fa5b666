#pragma once

#include <map>
#include <span>
#include <string>

#include "driver/compile/compile.h"
#include "runtime/executor.h"
#include "target/energy/energy_counter.h"

namespace heddle::driver {

// Measures the steps of a compiled model and writes the median time of every step into the model's report: the time of
// a kernel into its KernelReport, and the time of a whole loop into its GroupReport. On a CPU, runs for about `seconds`
// and measures wall time with `threads` threads. On a GPU, measures device time on GPU `device`, with the kernels in
// the order of a run.
void measure(CompiledModel& model, int threads, std::map<std::string, Tensor> inputs, uint64_t seed, double seconds,
             int device = 0);

// Measures the energy of a run for about `seconds`. Runs on a GPU do not copy inputs and outputs. `device` is the
// number of the GPU. If the device has no energy counter, EnergyFigure::why_not says so.
EnergyFigure energy_of_runs(const runtime::Executor& executor, std::span<const Tensor> inputs, int device,
                            double seconds);

// A lower bound for the time of a run, from the memory bandwidth and the arithmetic throughput of the plan's target. On
// a CPU, the bound is for one thread.
double floor_seconds(const runtime::Plan& plan);

// The number of kernels that a plan launches. Each kernel in the body of a loop or branch counts once.
size_t kernel_count(const runtime::Plan& plan);

}  // namespace heddle::driver
