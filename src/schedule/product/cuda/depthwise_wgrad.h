#pragma once

#include "schedule/product/cuda/family.h"

namespace heddle::schedule {

// The family of the filter gradients of depthwise convolutions (tile/kernel/cuda/window/depthwise_wgrad.h).
const Family& depthwise_wgrad_family();

}  // namespace heddle::schedule
