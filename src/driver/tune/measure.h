#pragma once

#include <map>
#include <string>

#include "driver/compile/compile.h"

namespace heddle::driver {

// Measures a model that was compiled with its kernels, and writes the median time of every step into its report: of a
// kernel into its KernelReport, of a whole loop into its GroupReport. On a CPU it runs for about `seconds` and takes
// wall time with all threads. On GPU `device` it takes device time, with the kernels in the order of a run.
void measure(CompiledModel& model, int threads, std::map<std::string, Tensor> inputs, uint64_t seed, double seconds,
             int device = 0);

// The least time of a run that memory and arithmetic of the plan's machine allow; on a CPU, with one thread.
double floor_seconds(const runtime::Plan& plan);

// The number of kernels that a plan launches, with those in the bodies of loops and branches counted once.
size_t kernel_count(const runtime::Plan& plan);

}  // namespace heddle::driver
