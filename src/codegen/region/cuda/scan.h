#pragma once

#include "codegen/region/cuda/context.h"

namespace heddle::codegen {

// A scan: the team walks along, a thread for each element, and carries the running result.
void write_scan(SweepContext& c, const schedule::CudaStage& stage);

}  // namespace heddle::codegen
