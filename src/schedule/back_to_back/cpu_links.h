#pragma once

#include "schedule/back_to_back/cpu.h"

namespace heddle::schedule {

// A chain of contractions as one kernel, assembled from kernels that were scheduled separately.
struct CpuChainParts {
  CpuBackToBackDesc desc;
  std::vector<Operand> operands;  // of the combined kernel
  std::vector<Binding> bindings;
};

// Links the kernels of a chain into one kernel. `kernels[i]` computes `inner[i]`, which `kernels[i + 1]` reads. Throws
// kUnsupportedOperator if rows of one contraction depend on anything but rows of the preceding contraction.
CpuChainParts link_kernels(std::vector<ScheduledKernel> kernels, const std::vector<ir::ValueId>& inner);

}  // namespace heddle::schedule
