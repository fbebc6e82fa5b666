// Copies a tensor, or fills one with a value, and replaces some elements by updates or combines them with updates.
// Updates with the same index are applied in row-major order. Negative indices count from the end. Indices out of range
// are clamped, so that nothing outside the tensor is written. With `Drop`, indices out of range and negative indices
// are skipped instead. If `data` is null, every element is first set to the value at `fill`; if that is null, too,
// `out` already contains the tensor.
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

// The part of `out` that begins at element `at`, before any update.
template <typename T>
TILE_INLINE void begin_part(const T* data, const T* fill, T* out, int64_t at, int64_t count) {
  if (data != nullptr) {
    __builtin_memcpy(out + at, data + at, size_t(count) * sizeof(T));
  } else if (fill != nullptr) {
    const T value = *fill;
    for (int64_t i = 0; i < count; ++i) out[at + i] = value;
  }
}

// Combines `count` neighbouring elements with the updates.
template <typename Combine, typename T>
TILE_INLINE void combine_row(T* to, const T* update, int64_t count) {
  if constexpr (is_same<Combine, replaced>) {
    __builtin_memcpy(to, update, size_t(count) * sizeof(T));
  } else {
    for_lanes<kLanes>(
        0, count, [&]<int W>(int64_t j, auto n) __attribute__((always_inline)) {
          put(to + j, Combine::apply(fetch<W>(to + j, n), fetch<W>(update + j, n)), n);
        });
  }
}

}  // namespace detail

// For every position of `indices`: out[i0, ..., index, ...] <- updates[i0, ..., i, ...], where index = indices[i0, ...,
// i, ...] replaces the coordinate i of dimension Dim. `indices` and `updates` have the shape `index_shape`. This shape
// is not larger than `shape` along any dimension except Dim. `index_stride` gives the stride of `indices` along each
// dimension; a stride is 0 if all positions along the dimension share an index. Processes the positions [first, last)
// of `out` along one dimension: the first dimension that is not Dim, or Dim itself if it is the only one.
template <typename Combine, int Rank, int Dim, bool Drop, typename T, typename I>
void scatter_elements(const T* TILE_RESTRICT data, const T* fill, const I* TILE_RESTRICT indices,
                      const T* TILE_RESTRICT updates, T* TILE_RESTRICT out, const int64_t* shape,
                      const int64_t* index_shape, const int64_t* index_stride, int64_t first, int64_t last) {
  constexpr int kAlong = Dim == 0 && Rank > 1 ? 1 : 0, kLast = Rank - 1;
  int64_t stride[Rank], step[Rank], low[Rank] = {}, high[Rank];  // of `out`, of `updates`; the positions of updates
  stride[kLast] = step[kLast] = 1;
  for (int d = kLast; d > 0; --d) stride[d - 1] = stride[d] * shape[d], step[d - 1] = step[d] * index_shape[d];
  for (int64_t i = 0; i < (kAlong == 0 ? 1 : shape[0]); ++i) {
    detail::begin_part(data, fill, out, i * stride[0] * kAlong + first * stride[kAlong],
                       (last - first) * stride[kAlong]);
  }
  for (int d = 0; d < Rank; ++d) high[d] = index_shape[d];
  if constexpr (kAlong != Dim) {
    low[kAlong] = first;
    if (high[kAlong] > last) high[kAlong] = last;
  }
  int64_t at[Rank];
  for (int d = 0; d < Rank; ++d) {
    at[d] = low[d];
    if (low[d] >= high[d]) return;
  }
  const int64_t extent = shape[Dim], next = index_stride[kLast], length = high[kLast] - low[kLast];
  for (bool more = true; more;) {
    int64_t base = Dim == kLast ? 0 : low[kLast];
    const I* from = indices + low[kLast] * next;
    const T* update = updates + low[kLast];
    for (int d = 0; d < kLast; ++d) {
      base += d == Dim ? 0 : at[d] * stride[d];
      from += at[d] * index_stride[d];
      update += at[d] * step[d];
    }
    const auto is_dropped = [&](I index) { return Drop && !(index >= I(0) && uint64_t(index) < uint64_t(extent)); };
    if (Dim != kLast && next == 0) {
      if (!is_dropped(*from)) {
        detail::combine_row<Combine>(out + base + wrap_index(*from, extent) * stride[Dim], update, length);
      }
    } else {
      for (int64_t j = 0; j < length; ++j, from += next) {
        if (is_dropped(*from)) continue;
        const int64_t index = wrap_index(*from, extent);
        if (kAlong == Dim && (index < first || index >= last)) continue;
        detail::combine_into<Combine>(out + base + index * stride[Dim] + (Dim == kLast ? 0 : j), update + j);
      }
    }
    more = false;
    for (int d = kLast - 1; d >= 0 && !more; --d) {
      more = ++at[d] < high[d];
      if (!more) at[d] = low[d];
    }
  }
}

// out[index tuple i, :] <- updates[i, :] for i < tuples. A tuple has Depth indices. The dimensions of the tuple are
// treated as rows, the others as columns. Both are divided into blocks, numbered with those of the columns first;
// processes the blocks [first, last).
template <typename Combine, int Rank, int Depth, typename T, typename I>
void scatter_nd(const T* TILE_RESTRICT data, const T* fill, const I* TILE_RESTRICT indices,
                const T* TILE_RESTRICT updates, T* TILE_RESTRICT out, const int64_t* shape, int64_t tuples,
                int64_t block_rows, int64_t block_columns, int64_t first, int64_t last) {
  int64_t inner = 1, rows = 1;
  for (int d = Depth; d < Rank; ++d) inner *= shape[d];
  for (int d = 0; d < Depth; ++d) rows *= shape[d];
  const int64_t across = (inner + block_columns - 1) / block_columns;
  for (int64_t block = first; block < last; ++block) {
    const int64_t row_begin = block / across * block_rows, column = block % across * block_columns;
    const int64_t row_end = row_begin + block_rows < rows ? row_begin + block_rows : rows;
    const int64_t columns = column + block_columns < inner ? block_columns : inner - column;
    const bool whole = columns == inner;
    for (int64_t r = row_begin; r < row_end; r = whole ? row_end : r + 1) {
      detail::begin_part(data, fill, out, r * inner + column, whole ? (row_end - r) * inner : columns);
    }
    // Tuples of other blocks are left out without a branch, which would be mispredicted.
    constexpr int kTogether = 256;
    int64_t to[kTogether], from[kTogether];
    for (int64_t begin = 0; begin < tuples; begin += kTogether) {
      int count = 0;
      for (int64_t i = begin; i < tuples && i < begin + kTogether; ++i) {
        int64_t row = 0;
        for (int d = 0; d < Depth; ++d) row = row * shape[d] + wrap_index(indices[i * Depth + d], shape[d]);
        to[count] = row, from[count] = i;
        count += int(row >= row_begin) & int(row < row_end);
      }
      for (int k = 0; k < count; ++k) {
        detail::combine_row<Combine>(out + to[k] * inner + column, updates + from[k] * inner + column, columns);
      }
    }
  }
}

}  // namespace heddle::tile
