#pragma once

#include "schedule/attention/attention.h"
#include "schedule/kernel_plan.h"

namespace heddle::schedule {

// Facts about an attention on which the kernel's text depends, in addition to the configuration.
struct AttentionVariant {
  tile::AttentionScores scores;
  bool ragged;    // the last tile of keys is not full
  bool one_tile;  // no row has more than one tile of keys
};
AttentionVariant variant_of(const AttentionDesc& attention, const CudaAttentionConfig& config);

// Plans the launch of the kernel, without its symbol and the arguments of its functors. The kernel has `operands`
// operands; the workspace and the counters follow them.
KernelLaunches plan_launches(const AttentionDesc& attention, const CudaAttentionConfig& config, const GpuTarget& target,
                             size_t operands);

}  // namespace heddle::schedule
