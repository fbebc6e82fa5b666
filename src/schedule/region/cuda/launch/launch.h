#pragma once

#include "schedule/kernel_plan.h"
#include "schedule/region/cuda/launch/bundle.h"
#include "schedule/region/cuda/stitch.h"
#include "schedule/region/standalone.h"

namespace heddle::schedule {

// The layout of a block's shared memory: first the scratch of its thread groups, then memory for exchanges between
// threads. Offsets are in bytes.
struct SharedMemory {
  static constexpr int64_t kSlotBytes = 1024;        // for combining one reduction over the block
  static constexpr int64_t kBarrierBytes = 8;        // one barrier of an exchange in a cluster
  int64_t scratch_bytes = 0;                         // of a thread group
  int64_t slots = 0, columns = 0, column_bytes = 0;  // for columns: column_bytes per thread group
  int64_t handed_over = 0, handed_over_bytes = 0;    // columns that the blocks of a CTA group exchange
  int64_t barriers = 0, barrier_count = 0;
  int64_t bytes = 0;
};
SharedMemory shared_memory(const CudaStitchDesc& body);
// Returns the number of bytes that the blocks of a CTA group exchange for one reduction.
int64_t handed_over_bytes(const CudaStitchDesc& body, const ThreadLayout& layout, const CudaReduction& r);

KernelLaunches plan_launches(const CudaStitchDesc& body, size_t operands);
KernelLaunches plan_launches(const StandaloneDesc& desc, const Config& config, size_t operands);
// Plans the launch of a bundle. Its kernel has one argument, an array of pointers to the `operands` operands. The code
// generator chooses the order of the pointers.
KernelLaunches plan_launches(const CudaBundleDesc& bundle, size_t operands);

}  // namespace heddle::schedule
