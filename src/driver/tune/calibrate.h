#pragma once

#include <string>

#include "target/calibration.h"
#include "target/target.h"

namespace heddle::driver {

// Measures the CPU with `threads` workers, in some seconds.
CpuRates measure_cpu(int threads);

// Measures a GPU by kernels that NVRTC compiles, in some seconds. Throws kDevice where there is no such GPU or it is an
// emulated one, kNoCompiler, kOutOfMemory.
CudaRates measure_cuda(int ordinal);

// The text of those kernels.
std::string cuda_calibration_unit(const CudaTarget& target);

}  // namespace heddle::driver
