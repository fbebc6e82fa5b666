#pragma once

#include "schedule/attention/attention.h"
#include "schedule/kernel_plan.h"

namespace heddle::schedule {

// The facts besides the configuration that the kernel's text depends on.
struct AttentionVariant {
  bool scores, plain;  // some tiles take their scores from the functor; some are plain
  bool ragged;         // the last tile of keys is not full
  bool one_tile;       // no rows have more than one tile of keys
};
AttentionVariant variant_of(const AttentionDesc& attention, const CudaAttentionConfig& config);

// The launch of the kernel, without its symbol and the arguments of its functors. It has `operands` operands; workspace
// and counters follow them.
KernelLaunches plan_launches(const AttentionDesc& attention, const CudaAttentionConfig& config,
                             const CudaTarget& target, size_t operands);

}  // namespace heddle::schedule
