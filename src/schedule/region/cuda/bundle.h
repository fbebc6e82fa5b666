#pragma once

#include <memory>
#include <vector>

#include "schedule/region/cuda/stitch.h"

namespace heddle::schedule {

// Several GPU kernels in one launch. Each kernel is a part that consists of consecutive blocks. No part reads the
// results of another part. Parts use neither shared memory nor block barriers, and all parts have the same block size.
struct CudaBundleDesc {
  struct Part {
    std::shared_ptr<const CudaStitchDesc> body;
    std::vector<Operand> operands;
    size_t first = 0;  // the part's operands are [first, first + operands.size()) of the bundle's
  };
  std::vector<Part> parts;
};

// Joins elementwise kernels and short kernels of a group into bundles, unless a kernel that must run between them
// prevents this.
ScheduledGroup bundle_cuda_kernels(ScheduledGroup group);

}  // namespace heddle::schedule
