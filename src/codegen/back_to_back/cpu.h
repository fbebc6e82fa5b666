#pragma once

#include "codegen/codegen.h"
#include "schedule/back_to_back/cpu.h"

namespace heddle::codegen {

// Emits a kernel of contractions back to back for a CPU. Its text has all numbers as literals.
KernelSource emit_cpu_back_to_back(const schedule::KernelPlan& plan, const schedule::CpuBackToBackDesc& desc,
                                   const Target& target);

}  // namespace heddle::codegen
