#pragma once

#include "codegen/text/cpu_function.h"
#include "schedule/region/stitch.h"

namespace heddle::codegen {

struct Naming;  // codegen/naming.h

CpuFunction stitch_function(const schedule::KernelDesc& desc, const schedule::CpuStitchDesc& body,
                            const schedule::Config& config, bool marked, const Naming* naming = nullptr);

// `marked` has the same meaning in all emitters for a CPU. If it is true, the symbol is only a prefix, the text has
// kStandIn in place of the kernel's name, and the numbers in the text have marks (numbers.h).
KernelSource emit_cpu_stitch(const schedule::KernelDesc& desc, const schedule::CpuStitchDesc& body,
                             const schedule::Config& config, bool marked = false, const Naming* naming = nullptr);

}  // namespace heddle::codegen
