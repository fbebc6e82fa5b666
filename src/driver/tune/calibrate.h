#pragma once

#include <string>

#include "target/calibration.h"

namespace heddle::driver {

// Measures the CPU with `threads` workers, in some seconds.
CpuRates measure_cpu(int threads);

// Measures a GPU by kernels that NVRTC compiles, in some seconds. Throws kDevice where there is no such GPU or it is an
// emulated one, kNoCompiler, kOutOfMemory.
CudaRates measure_cuda(int ordinal);

// The text of those kernels for a compute capability (times ten).
std::string cuda_calibration_unit(int sm);

}  // namespace heddle::driver
