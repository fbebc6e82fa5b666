#pragma once

#include <string>

#include "harness.h"
#include "runtime/cuda/device.h"

namespace heddle::testing {

// Loads machine code on the first device of this interface and runs kernels of it. Their buffers are copied to the
// device and back around each group.
RunKernels run_on_gpu(runtime::GpuApi api, const std::string& machine_code);

}  // namespace heddle::testing
