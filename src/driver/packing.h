#pragma once

#include "heddle/tensor.h"
#include "schedule/kernel_desc.h"

namespace heddle::driver {

// A constant in the layout that a kernel asked for. The result is one-dimensional: its elements in memory order.
Tensor pack(const Tensor& dense, const schedule::Packing& packing);

}  // namespace heddle::driver
