#pragma once

#include "schedule/kernel_desc.h"
#include "tile/core/pack.h"
#include "tile/core/winograd.h"

namespace heddle::schedule {

// Panels of a matrix or of filters (tile/core/pack.h), with elements in their original dtype.
Packing panel_packing(const tile::PanelSource& source, int64_t offset, int64_t width);

// Panels of words of `elements` small integers each (pack_words() in tile/core/pack.h): bytes if there are four, else
// 16-bit numbers. The source has elements of one or two bytes.
Packing word_packing(const tile::PanelSource& source, int64_t offset, int64_t width, int64_t elements);

// Filters [o][c][3][3], transformed for F(4x4, 3x3) (tile/core/winograd.h). The result is always in f32.
Packing winograd_packing(int64_t o, int64_t c, int64_t width);
// Integer filters as words of two 16-bit numbers; fits_winograd_words() if the convolution is exact then.
bool fits_winograd_words(const Tensor& filters);
Packing winograd_word_packing(int64_t o, int64_t c, int64_t width);

// Combines `together` groups of `source` (n: filters, inner: channels, outer: taps) into one group that has the
// channels of all of them. Each filter becomes a row of `pitch` elements along k = (tap, channel), with zeros for the
// channels of the other groups. The rows of a combined group are ordered by (n / run, group, n % run).
Packing diagonal_packing(const tile::PanelSource& source, int64_t pitch, int64_t together, int64_t run);

// The words of a `dequantize` node, n rows of k integers of `bits` bits, in the order in which the tensor-core kernel
// reads them (tile/core/pack.h).
Packing fragment_packing(int64_t n, int64_t k, int64_t bits);

// Scales or zero points [n][blocks] of such weights, as `dtype`, times 2^exponent. Rows are padded with zeros to
// `padded` blocks.
Packing fragment_scale_packing(int64_t n, int64_t blocks, int64_t padded, DType dtype, int exponent);

// A vector of numbers as `dtype`.
Packing number_packing(int64_t count, DType dtype);

// Packs a constant into the layout that a kernel expects. The result is a flat tensor. Throws kInternal for an unknown
// kind, or if the parameters refer to elements outside of the constant.
Tensor pack_constant(const Tensor& constant, const Packing& packing);

// packed_type(): the type of the packed tensor. pack_constant(): packs the constant into the memory at `to`, which must
// have the size of this type.
ir::TensorType packed_type(const Tensor& constant, const Packing& packing);
void pack_constant(const Tensor& constant, const Packing& packing, void* to);

}  // namespace heddle::schedule
