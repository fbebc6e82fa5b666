#pragma once

#include <string>
#include <vector>

#include "heddle/ops.h"
#include "ops/prepared_kernel.h"
#include "schedule/attention/attention.h"

namespace heddle::ops {

// A problem with all defaults filled in, and its description, which has configurations.
struct ResolvedAttention {
  AttentionProblem problem;  // sizes and strides that were 0 for a default are filled in
  schedule::KernelDesc desc;
  // By operand of the description: Q, K, V, O, then those of bias, sinks, lengths and page table that the problem has.
  std::vector<OperandSpan> spans;

  const schedule::AttentionDesc& attention() const;
  bool is_empty() const;  // O has no elements
};

// Throws as Attention::prepare() does for a wrong problem.
ResolvedAttention resolve(const AttentionProblem& problem);

// Configurations that run on a device, best prediction first. Throws kUnsupportedOperator if there are none.
std::vector<schedule::Config> candidates(const ResolvedAttention& attention, const CudaTarget& target);

}  // namespace heddle::ops
