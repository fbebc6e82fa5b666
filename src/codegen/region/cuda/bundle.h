#pragma once

#include "codegen/codegen.h"
#include "schedule/region/cuda/launch/bundle.h"

namespace heddle::codegen {

// Emits a bundle of kernels as one launch. `marked` has the same meaning as for emit_cuda_stitch().
KernelSource emit_cuda_bundle(const schedule::KernelPlan& plan, const schedule::CudaBundleDesc& bundle,
                              bool marked = false);

}  // namespace heddle::codegen
