#pragma once

#include "schedule/kernel_desc.h"
#include "tile/core/pack.h"

namespace heddle::schedule {

// Panels of a matrix or of filters (tile/core/pack.h), elements in their own dtype.
Packing panel_packing(const tile::PanelSource& source, int64_t offset, int64_t width);

// A constant in the layout that a kernel wants: a flat tensor. kInternal for an unknown kind or parameters that reach
// outside the constant.
Tensor pack_constant(const Tensor& constant, const Packing& packing);

}  // namespace heddle::schedule
