#pragma once

#include "codegen/codegen.h"
#include "schedule/cuda_bundle.h"

namespace heddle::codegen {

KernelSource emit_cuda_bundle(const schedule::CudaBundleDesc& bundle, const CudaTarget& target);

}  // namespace heddle::codegen
