#pragma once

#include "harness.h"

namespace heddle::testing {

// Kernels on the device of the driver in use. Their buffers are copied there and back around each group.
RunKernels compile_for_cuda(const std::vector<const codegen::KernelSource*>& kernels, const Target& target);

}  // namespace heddle::testing
