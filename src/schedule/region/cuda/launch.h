#pragma once

#include "schedule/kernel_plan.h"
#include "schedule/region/cuda/bundle.h"
#include "schedule/region/cuda/stitch.h"
#include "schedule/region/standalone.h"

namespace heddle::schedule {

// The shared memory of a block: scratch of its teams first, then what threads hand to each other. Offsets in bytes.
struct SharedMemory {
  static constexpr int64_t kSlotBytes = 1024;        // where a reduction of the block is combined
  static constexpr int64_t kBarrierBytes = 8;        // of an exchange in a cluster
  int64_t scratch_bytes = 0;                         // of a team
  int64_t slots = 0, columns = 0, column_bytes = 0;  // columns: of each team, where it combines them
  int64_t handed_over = 0, handed_over_bytes = 0;    // columns that the blocks of a CTA group hand to each other
  int64_t barriers = 0, barrier_count = 0;
  int64_t bytes = 0;
};
SharedMemory shared_memory(const CudaStitchDesc& body);
// What the blocks of a CTA group hand over for one reduction.
int64_t handed_over_bytes(const CudaStitchDesc& body, const ThreadLayout& layout, const CudaReduction& r);

KernelLaunches plan_launches(const CudaStitchDesc& body, size_t operands);
KernelLaunches plan_launches(const StandaloneDesc& desc, const Config& config, size_t operands);
// The pointers lie in the one argument in the order that the text gives them.
KernelLaunches plan_launches(const CudaBundleDesc& bundle, size_t operands);

}  // namespace heddle::schedule
