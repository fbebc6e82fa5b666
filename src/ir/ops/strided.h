#pragma once

#include <algorithm>
#include <vector>

#include "ir/ops/parallel.h"
#include "ir/reference/array.h"

namespace heddle::ir {

using Ints = std::vector<int64_t>;

Ints row_major_strides(const Shape& shape);

// The product of the extents of dimensions [begin, end).
int64_t extent_product(const Shape& shape, size_t begin, size_t end);

// The extents of a tensor around dimension `dim`, as a tensor of shape [outer, extent, inner].
struct AroundDim {
  int64_t outer, extent, inner;
  AroundDim(const Shape& shape, int64_t dim)
      : outer(extent_product(shape, 0, static_cast<size_t>(dim))),
        extent(shape[static_cast<size_t>(dim)]),
        inner(extent_product(shape, static_cast<size_t>(dim) + 1, shape.size())) {}
};

// Visits rows [begin, end) of `extents` in row-major order. A row spans the last dimension. Calls visit(row, a, b),
// where a and b are the row's offsets under the two stride vectors. Needs no division per row.
template <typename Visit>
void for_each_row(const Shape& extents, const Ints& a_strides, const Ints& b_strides, int64_t begin, int64_t end,
                  const Visit& visit) {
  if (begin >= end) return;
  const size_t rank = extents.empty() ? 0 : extents.size() - 1;
  Ints at(rank);
  int64_t rest = begin, a = 0, b = 0;
  for (size_t d = rank; d-- > 0;) {
    at[d] = rest % extents[d];
    rest /= extents[d];
    a += at[d] * a_strides[d];
    b += at[d] * b_strides[d];
  }
  for (int64_t row = begin;;) {
    visit(row, a, b);
    if (++row == end) return;
    for (size_t d = rank; d-- > 0;) {
      a += a_strides[d];
      b += b_strides[d];
      if (++at[d] < extents[d]) break;
      a -= at[d] * a_strides[d];
      b -= at[d] * b_strides[d];
      at[d] = 0;
    }
  }
}

// Drops dimensions of extent 1 and merges adjacent dimensions that are contiguous in both stride vectors. At least one
// dimension remains.
void collapse(Shape& extents, Ints& a_strides, Ints& b_strides);

// Sets dst[sum_d(i[d] * dst_strides[d])] = src[sum_d(i[d] * src_strides[d])] for all coordinates i. Different
// coordinates must have different destinations.
template <typename T>
void copy_strided(Shape extents, const T* src, Ints src_strides, T* dst, Ints dst_strides) {
  if (element_count(extents) == 0) return;
  collapse(extents, src_strides, dst_strides);
  const int64_t length = extents.back(), from = src_strides.back(), to = dst_strides.back();
  parallel_for(extent_product(extents, 0, extents.size() - 1), length, [&](int64_t begin, int64_t end) {
    for_each_row(extents, src_strides, dst_strides, begin, end, [&](int64_t, int64_t s, int64_t d) {
      const T* in = src + s;
      T* out = dst + d;
      if (from == 1 && to == 1) {
        std::copy_n(in, length, out);
      } else if (from == 0 && to == 1) {
        std::fill_n(out, length, *in);
      } else {
        for (int64_t j = 0; j < length; ++j) out[j * to] = in[j * from];
      }
    });
  });
}

// Calls use(in, out) with the typed storage of both arrays. The arrays must have the same representation.
template <typename Use>
void with_storage(const Array& in, Array& out, const Use& use) {
  if (in.real()) {
    use(in.f(), out.f());
  } else {
    use(in.i(), out.i());
  }
}

}  // namespace heddle::ir
