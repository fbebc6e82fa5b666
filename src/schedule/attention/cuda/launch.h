#pragma once

#include "schedule/attention/attention.h"
#include "schedule/kernel_plan.h"

namespace heddle::schedule {

// What the kernel's text depends on beside its configuration.
struct AttentionVariant {
  bool scores, plain;  // there are tiles whose scores are the functor's; plain ones
  bool ragged;         // the last tile of keys is not full
  bool one_tile;       // no rows have more than one tile of keys
};
AttentionVariant variant_of(const AttentionDesc& attention, const AttentionConfig& config);

// How the kernel is launched, without its symbol and the arguments of its functors; it has `operands` operands, behind
// which workspace and counters come.
KernelLaunches plan_launches(const AttentionDesc& attention, const AttentionConfig& config, const CudaTarget& target,
                             size_t operands);

}  // namespace heddle::schedule
