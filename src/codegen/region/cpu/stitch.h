#pragma once

#include "codegen/text/cpu_function.h"
#include "schedule/region/stitch.h"

namespace heddle::codegen {

struct Naming;  // codegen/naming.h

CpuFunction stitch_function(const schedule::KernelDesc& desc, const schedule::StitchDesc& body,
                            const schedule::Config& config, bool marked, const Naming* naming = nullptr);

// With `marked`, as for all emitters for a CPU: the symbol is a prefix yet, the text has kStandIn in its place and
// marks around its numbers (numbers.h).
KernelSource emit_stitch(const schedule::KernelDesc& desc, const schedule::StitchDesc& body,
                         const schedule::Config& config, bool marked = false, const Naming* naming = nullptr);

}  // namespace heddle::codegen
