#pragma once

#include <map>
#include <string>

#include "driver/compile.h"

namespace heddle::driver {

// Runs a model that was compiled with its kernels for about `seconds` and writes the median time of every step (wall
// time, all threads; on GPU `device` its own time, between kernels as in a run) into its report: of a kernel at its
// KernelReport, of a loop as a whole at its GroupReport.
void measure(CompiledModel& model, int threads, std::map<std::string, Tensor> inputs, uint64_t seed, double seconds,
             int device = 0);

}  // namespace heddle::driver
