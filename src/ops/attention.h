#pragma once

#include <string>
#include <vector>

#include "heddle/ops.h"
#include "ops/prepared_kernel.h"
#include "schedule/attention/attention.h"

namespace heddle::ops {

// A problem with everything resolved, as a description that has configurations.
struct ResolvedAttention {
  AttentionProblem problem;  // no size or stride is 0 for another one any more
  schedule::KernelDesc desc;
  // Of the operands of the description: Q, K, V, O, then what the problem has of bias, sinks, lengths, table of
  // pages.
  std::vector<OperandSpan> spans;

  const schedule::AttentionDesc& attention() const;
  bool is_empty() const;  // O has no elements
};

// Throws as Attention::prepare() does for a wrong problem.
ResolvedAttention resolve(const AttentionProblem& problem);

// What runs on a device, best prediction first. Throws kUnsupportedOperator where there is nothing.
std::vector<schedule::Config> candidates(const ResolvedAttention& attention, const CudaTarget& target);

}  // namespace heddle::ops
