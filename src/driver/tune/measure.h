#pragma once

#include <map>
#include <string>

#include "driver/compile/compile.h"

namespace heddle::driver {

// Runs a model that was compiled with its kernels for about `seconds` and writes the median time of every step (wall
// time, all threads; on GPU `device` its own time, between kernels as in a run) into its report: of a kernel at its
// KernelReport, of a loop as a whole at its GroupReport.
void measure(CompiledModel& model, int threads, std::map<std::string, Tensor> inputs, uint64_t seed, double seconds,
             int device = 0);

// The least time of one run that the memory and the arithmetic of the plan's machine allow: of one thread on a CPU.
double floor_seconds(const runtime::Plan& plan);

// Steps that launch kernels, those in the bodies of loops and branches once.
size_t kernel_count(const runtime::Plan& plan);

}  // namespace heddle::driver
