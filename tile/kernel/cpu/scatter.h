// Copies a tensor and replaces some elements by updates, or combines them with updates. Updates with the same index are
// applied in row-major order. Negative indices count from the end. Indices out of range are clamped, so that nothing
// outside the tensor is written. With `Drop`, indices out of range and negative indices are skipped instead. If `data`
// is null, `out` already contains the tensor.
#pragma once

#include "tile/op/reduce.h"

namespace heddle::tile {

// The combiner that replaces the old element by the update.
struct replaced {};

namespace detail {

template <typename Combine, typename T>
TILE_INLINE void combine_into(T* to, const T* update) {
  if constexpr (is_same<Combine, replaced>) {
    *to = *update;
  } else {
    store(to, Combine::apply(load<1>(to), load<1>(update)));
  }
}

}  // namespace detail

// Copies `data` to `out`. Then, for every position of `indices`, out[i0, ..., index, ...] <- updates[i0, ..., i, ...],
// where index = indices[i0, ..., i, ...] replaces the coordinate i of dimension Dim. `indices` and `updates` have the
// shape `index_shape`. This shape is not larger than `shape` along any dimension except Dim. `index_stride` gives the
// stride of `indices` along each dimension; a stride is 0 if all positions along the dimension share an index.
// Processes rows [first, last) of dimension 0. If Dim is 0, processes all rows.
template <typename Combine, int Rank, int Dim, bool Drop, typename T, typename I>
void scatter_elements(const T* TILE_RESTRICT data, const I* TILE_RESTRICT indices, const T* TILE_RESTRICT updates,
                      T* TILE_RESTRICT out, const int64_t* shape, const int64_t* index_shape,
                      const int64_t* index_stride, int64_t first, int64_t last) {
  int64_t stride[Rank];
  stride[Rank - 1] = 1;
  for (int d = Rank - 1; d > 0; --d) stride[d - 1] = stride[d] * shape[d];
  if constexpr (Dim == 0) first = 0, last = shape[0];
  if (data != nullptr) {
    __builtin_memcpy(out + first * stride[0], data + first * stride[0], size_t((last - first) * stride[0]) * sizeof(T));
  }
  int64_t at[Rank] = {}, row = 1;  // coordinates of a row of `indices`; elements per step of dimension 0
  for (int d = 1; d < Rank; ++d) row *= index_shape[d];
  if constexpr (Dim == 0) last = index_shape[0];
  if (last > index_shape[0]) last = index_shape[0];
  const int64_t length = index_shape[Rank - 1];
  int64_t linear = first * row;
  const int64_t end = Rank == 1 ? length : last * row;
  if constexpr (Rank > 1) at[0] = first;
  while (linear < end) {
    int64_t base = 0;
    const I* from = indices;
    for (int d = 0; d + 1 < Rank; ++d) {
      base += d == Dim ? 0 : at[d] * stride[d];
      from += at[d] * index_stride[d];
    }
    for (int64_t j = 0; j < length; ++j, ++linear, from += index_stride[Rank - 1]) {
      if (Drop && !(*from >= I(0) && uint64_t(*from) < uint64_t(shape[Dim]))) continue;
      const int64_t index = wrap_index(*from, shape[Dim]) * stride[Dim];
      detail::combine_into<Combine>(out + base + index + (Dim == Rank - 1 ? 0 : j), updates + linear);
    }
    for (int d = Rank - 2; d >= 0; --d) {
      if (++at[d] < index_shape[d] || d == 0) break;
      at[d] = 0;
    }
  }
}

// Copies `data` to `out`. Then out[index tuple i, :] <- updates[i, :] for i < tuples. A tuple has Depth indices. The
// dimensions after the tuple are treated as columns; processes columns [first, last).
template <typename Combine, int Rank, int Depth, typename T, typename I>
void scatter_nd(const T* TILE_RESTRICT data, const I* TILE_RESTRICT indices, const T* TILE_RESTRICT updates,
                T* TILE_RESTRICT out, const int64_t* shape, int64_t tuples, int64_t first, int64_t last) {
  int64_t inner = 1, rows = 1;
  for (int d = Depth; d < Rank; ++d) inner *= shape[d];
  for (int d = 0; d < Depth; ++d) rows *= shape[d];
  const bool all = last - first == inner;
  for (int64_t r = 0; data != nullptr && r < (all ? 1 : rows); ++r) {
    const int64_t from = r * inner + first;
    __builtin_memcpy(out + from, data + from, size_t(all ? rows * inner : last - first) * sizeof(T));
  }
  for (int64_t i = 0; i < tuples; ++i) {
    int64_t row = 0;
    for (int d = 0; d < Depth; ++d) row = row * shape[d] + wrap_index(indices[i * Depth + d], shape[d]);
    T* to = out + row * inner;
    const T* update = updates + i * inner;
    if constexpr (is_same<Combine, replaced>) {
      __builtin_memcpy(to + first, update + first, size_t(last - first) * sizeof(T));
    } else {
      for_lanes<kLanes>(
          first, last, [&]<int W>(int64_t j, auto n) __attribute__((always_inline)) {
            put(to + j, Combine::apply(fetch<W>(to + j, n), fetch<W>(update + j, n)), n);
          });
    }
  }
}

}  // namespace heddle::tile
