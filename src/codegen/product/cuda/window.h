#pragma once

#include <string>

#include "codegen/codegen.h"
#include "schedule/product/contraction.h"

namespace heddle::codegen {

// Emits the GPU kernel of a depthwise convolution or a pooling.
KernelSource cuda_window_source(const schedule::KernelPlan& plan, const schedule::ContractionDesc& contraction,
                                const schedule::WindowDesc& window);

}  // namespace heddle::codegen
