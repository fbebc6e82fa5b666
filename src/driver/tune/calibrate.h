#pragma once

#include <string>

#include "target/calibration.h"
#include "target/target.h"

namespace heddle::driver {

// Measures the CPU with `threads` workers. Takes a few seconds.
CpuRates measure_cpu(int threads);

// Measures a GPU with kernels that NVRTC compiles. Takes a few seconds. Throws kDevice if there is no such GPU or the
// GPU is emulated, and kNoCompiler or kOutOfMemory.
CudaRates measure_cuda(int ordinal);

// The source text of the kernels of measure_cuda().
std::string cuda_calibration_unit(const CudaTarget& target);

}  // namespace heddle::driver
