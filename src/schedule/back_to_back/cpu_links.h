#pragma once

#include "schedule/back_to_back/cpu.h"

namespace heddle::schedule {

// The contractions of a chain, each of which was scheduled as a kernel of its own.
struct CpuChainParts {
  CpuBackToBackDesc desc;
  std::vector<Operand> operands;  // of the kernel
  std::vector<Binding> bindings;
};

// `kernels[i]` makes `inner[i]`, which the next one reads. Throws kUnsupportedOperator where rows of one are not made
// from rows of the one before.
CpuChainParts link_kernels(std::vector<ScheduledKernel> kernels, const std::vector<ir::ValueId>& inner);

}  // namespace heddle::schedule
