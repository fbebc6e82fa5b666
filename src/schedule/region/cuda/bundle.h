#pragma once

#include <memory>
#include <vector>

#include "schedule/region/cuda/stitch.h"

namespace heddle::schedule {

// Several kernels of a GPU as one launch: the blocks of the parts follow each other. No part reads what another makes,
// none has shared memory or barriers of a block, and all have blocks of the same size.
struct CudaBundleDesc {
  struct Part {
    std::shared_ptr<const CudaStitchDesc> body;
    std::vector<Operand> operands;
    size_t first = 0;  // of the bundle's operands: those of a part lie side by side
  };
  std::vector<Part> parts;
};

// Joins what is elementwise or short among the kernels of a group where no kernel between them stands in the way.
ScheduledGroup bundle_cuda_kernels(ScheduledGroup group);

}  // namespace heddle::schedule
