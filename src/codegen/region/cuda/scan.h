#pragma once

#include "codegen/region/cuda/context.h"

namespace heddle::codegen {

// Writes a scan. In each step the thread group scans one element per thread. The running result carries over to the
// next step along the scanned dimension.
void write_scan(SweepContext& c, const schedule::CudaStage& stage);

}  // namespace heddle::codegen
