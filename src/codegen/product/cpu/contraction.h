#pragma once

#include "codegen/codegen.h"
#include "schedule/product/contraction.h"

namespace heddle::codegen {

// Whether a kernel is as fast where the sizes of the problem are no literals: it works in micro-kernels for long, or
// (Winograd) in transforms that do not depend on them.
bool sizes_are_free(const schedule::ContractionDesc& contraction);

// A contraction as an instantiation of its template with the epilogue as a functor.
KernelSource emit_contraction(const schedule::KernelDesc& desc, const schedule::ContractionDesc& contraction,
                              const schedule::Config& config, const Target& target, bool marked = false);

}  // namespace heddle::codegen
