#pragma once

#include "codegen/codegen.h"
#include "schedule/back_to_back/cpu.h"

namespace heddle::codegen {

// Emits the CPU kernel of two or more back-to-back contractions. Sizes and strides are literals in its text.
KernelSource emit_cpu_back_to_back(const schedule::KernelPlan& plan, const schedule::CpuBackToBackDesc& desc,
                                   const Target& target);

}  // namespace heddle::codegen
