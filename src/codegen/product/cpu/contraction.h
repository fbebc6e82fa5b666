#pragma once

#include "codegen/codegen.h"
#include "schedule/product/contraction.h"

namespace heddle::codegen {

// A contraction as an instantiation of its template with the epilogue as a functor.
KernelSource emit_contraction(const schedule::KernelDesc& desc, const schedule::ContractionDesc& contraction,
                              const schedule::Config& config, const Target& target, bool marked = false);

}  // namespace heddle::codegen
