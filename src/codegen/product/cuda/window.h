#pragma once

#include <string>

#include "codegen/codegen.h"
#include "schedule/product/contraction.h"

namespace heddle::codegen {

// A depthwise convolution or pooling on a GPU.
KernelSource cuda_window_source(const schedule::KernelPlan& plan, const schedule::ContractionDesc& contraction,
                                const schedule::WindowDesc& window);

}  // namespace heddle::codegen
