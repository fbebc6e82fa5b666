#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedule/region/cuda/stitch.h"

namespace heddle::schedule {

// Several GPU kernels in one launch. Each kernel is a part that consists of consecutive blocks. No part reads the
// results of another part, except for the last step. Threads of a block that a part does not need end at once. A
// block's shared memory is as large as the largest part requires.
struct CudaBundleDesc {
  struct Part {
    std::shared_ptr<const CudaStitchDesc> body;
    std::vector<Operand> operands;
    size_t first = 0;  // the part's operands are [first, first + operands.size()) of the bundle's
  };
  // A kernel that reads results of the only part. The part's blocks count arrivals at a counter for each block of this
  // kernel; the block that arrives last computes it. So no block waits for another.
  struct LastStep {
    Part part;
    int64_t arrivals = 1;  // blocks of the part for each block of the last step
    // Block `b` of the part arrives for block `sum of (b / below % count) * weight` of the last step.
    struct Digit {
      int64_t below, count, weight;
    };
    std::vector<Digit> digits;
  };
  std::vector<Part> parts;
  std::optional<LastStep> last;
  int threads = 0;  // of a block

  std::vector<const Part*> all() const;  // the parts and the last step
};

// Joins kernels of a group: kernels that do not wait for each other go side by side, and a short kernel becomes the
// last step of the kernel before it, if this is predicted to save time. Appends to the group's notes why other kernels
// remain separate. `elementwise_only`: joins only kernels without reductions.
ScheduledGroup bundle_cuda_kernels(ScheduledGroup group, const GpuTarget& target, bool elementwise_only);

}  // namespace heddle::schedule
