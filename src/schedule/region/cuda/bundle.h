#pragma once

#include <memory>
#include <vector>

#include "schedule/region/cuda/stitch.h"

namespace heddle::schedule {

// Several GPU kernels in one launch: the blocks of its parts follow each other. No part reads what another makes. No
// part has shared memory or block barriers, and all have the same block size.
struct CudaBundleDesc {
  struct Part {
    std::shared_ptr<const CudaStitchDesc> body;
    std::vector<Operand> operands;
    size_t first = 0;  // index in the bundle's operands; those of a part are contiguous
  };
  std::vector<Part> parts;
};

// Joins elementwise or short kernels of a group into bundles, unless a kernel between them prevents it.
ScheduledGroup bundle_cuda_kernels(ScheduledGroup group);

}  // namespace heddle::schedule
