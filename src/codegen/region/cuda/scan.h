#pragma once

#include "codegen/region/cuda/context.h"

namespace heddle::codegen {

// Writes a scan. The thread group steps along the scanned dimension, one element per thread and step, and carries the
// running result from step to step.
void write_scan(SweepContext& c, const schedule::CudaStage& stage);

}  // namespace heddle::codegen
