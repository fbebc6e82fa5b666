#pragma once

#include <string>

#include "codegen/codegen.h"
#include "schedule/product/contraction.h"

namespace heddle::codegen {

// A depthwise convolution or pooling on a GPU as text and its launch, without named headers.
KernelSource cuda_window_source(const schedule::KernelDesc& desc, const schedule::ContractionDesc& contraction,
                                const schedule::WindowDesc& window, const schedule::Config& config,
                                const std::string& symbol);

}  // namespace heddle::codegen
