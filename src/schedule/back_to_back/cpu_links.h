#pragma once

#include "schedule/back_to_back/cpu.h"

namespace heddle::schedule {

// The contractions of a chain, each scheduled as a separate kernel before.
struct CpuChainParts {
  CpuBackToBackDesc desc;
  std::vector<Operand> operands;  // of the kernel
  std::vector<Binding> bindings;
};

// `kernels[i]` computes `inner[i]`, which the next one reads. Throws kUnsupportedOperator if the rows of a contraction
// do not depend only on rows of the one before.
CpuChainParts link_kernels(std::vector<ScheduledKernel> kernels, const std::vector<ir::ValueId>& inner);

}  // namespace heddle::schedule
