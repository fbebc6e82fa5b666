#pragma once

#include "schedule/kernel_desc.h"
#include "tile/core/pack.h"
#include "tile/core/winograd.h"

namespace heddle::schedule {

// Panels of a matrix or of filters (tile/core/pack.h), elements in their own dtype.
Packing panel_packing(const tile::PanelSource& source, int64_t offset, int64_t width);

// Filters [o][c][3][3] transformed for F(4x4, 3x3) (tile/core/winograd.h), always in f32.
Packing winograd_packing(int64_t o, int64_t c, int64_t width);

// The filters of `together` groups of `source` (n: filters, inner: channels, outer: taps) as those of one group with
// the channels of all: rows of `pitch` elements along k = (tap, channel), zero for the channels of other groups. Rows
// are ordered by (n / run, group, n % run).
Packing diagonal_packing(const tile::PanelSource& source, int64_t pitch, int64_t together, int64_t run);

// Packs a constant into the layout that a kernel expects: a flat tensor. Throws kInternal for an unknown kind or
// parameters that reach outside the constant.
Tensor pack_constant(const Tensor& constant, const Packing& packing);

// The type of the packed tensor; packs into memory of that size.
ir::TensorType packed_type(const Tensor& constant, const Packing& packing);
void pack_constant(const Tensor& constant, const Packing& packing, void* to);

}  // namespace heddle::schedule
