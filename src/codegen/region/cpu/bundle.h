#pragma once

#include "codegen/codegen.h"
#include "schedule/region/bundle.h"

namespace heddle::codegen {

KernelSource emit_cpu_bundle(const schedule::CpuBundleDesc& bundle, size_t operands, bool marked = false);

}  // namespace heddle::codegen
