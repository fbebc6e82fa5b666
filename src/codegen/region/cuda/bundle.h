#pragma once

#include "codegen/codegen.h"
#include "schedule/region/cuda/bundle.h"

namespace heddle::codegen {

// `operands`: of the bundle. With `marked` as emit_cuda_stitch.
KernelSource emit_cuda_bundle(const schedule::CudaBundleDesc& bundle, size_t operands, const CudaTarget& target,
                              bool marked = false);

}  // namespace heddle::codegen
