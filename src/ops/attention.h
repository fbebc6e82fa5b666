#pragma once

#include <string>
#include <vector>

#include "heddle/ops.h"
#include "ops/prepared_kernel.h"
#include "schedule/attention/attention.h"

namespace heddle::ops {

// An attention problem with all defaults filled in, and the kernel description that configurations apply to.
struct ResolvedAttention {
  AttentionProblem problem;  // default sizes and strides, given as 0, are filled in
  schedule::KernelDesc desc;
  // One per operand of the description: Q, K, V, O, then bias, sinks, lengths and page table, if the problem has
  // them.
  std::vector<OperandSpan> spans;

  const schedule::AttentionDesc& attention() const;
  bool is_empty() const;  // O has no elements
};

// Fills in the defaults of a problem. For an invalid problem, throws as Attention::prepare() does.
ResolvedAttention resolve(const AttentionProblem& problem);

// Returns the configurations that can run on a device, best prediction first. Throws kUnsupportedOperator if there are
// none.
std::vector<schedule::Config> candidates(const ResolvedAttention& attention, const CudaTarget& target);

}  // namespace heddle::ops
