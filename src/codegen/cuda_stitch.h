#pragma once

#include "codegen/codegen.h"
#include "schedule/cuda_stitch.h"

namespace heddle::codegen {

KernelSource emit_cuda_stitch(const schedule::KernelDesc& desc, const schedule::CudaStitchDesc& body);

}  // namespace heddle::codegen
