// Scatters: copies of a tensor in which some elements are replaced by updates or combined with updates. If an element
// has several updates, they are applied in row-major order: one thread owns the element and applies all of the
// element's updates in order. So results are the same in every run, and no block waits for another. Negative indices
// count from the end. Indices out of range are clamped, so that nothing outside of the tensor is written. With `kDrop`,
// updates with negative indices or indices out of range are skipped instead. With `kInPlace`, y already holds the
// tensor, and elements without an update are not accessed.
#pragma once

#include "tile/core/cuda_standalone.h"
#include "tile/op/cuda/stitch.h"

namespace heddle::tile::cuda {

// The combiner that replaces an element by its update.
struct replaced {};

template <typename Combine, typename T>
__device__ inline void combine_into(T* to, const T* update) {
  if constexpr (is_same<Combine, replaced>) {
    *to = *update;
  } else {
    store(to, splat<1>(Combine::apply(load<1>(to).v, load<1>(update).v)));
  }
}

// Returns a / b. Divides in 32 bits if a and b fit, since a 64-bit division takes three times as long.
__device__ inline int64_t quotient(int64_t a, int64_t b) {
  if ((a | b) >> 32 == 0) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  return a / b;
}

// For every element of `indices`, at (i0, ..., i, ...): y[i0, ..., index, ...] <- updates[i0, ..., i, ...]. `index` is
// the element's value, in place of the coordinate i along the axis of the scatter. Along every other dimension, the
// extent of `indices` is at most that of the data. A thread reads all indices of one column along the axis and applies
// the updates of the rows that it owns. The rows of y are divided into 2^args.shares interleaved shares, and a thread
// owns one share. Neighbouring threads have neighbouring columns.
template <typename Combine, typename T, typename I, bool kInPlace = false, bool kDrop = false>
__device__ inline void scatter_elements(const ScatterElementsArgs& args) {
  const int64_t number = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (number >= args.threads) return;
  const int64_t stride = args.common.inner, shares = int64_t{1} << args.shares;
  const int64_t above = quotient(number, stride), inner = number - above * stride;
  const int64_t outer = above >> args.shares, own = above & (shares - 1);
  const int64_t column = outer * args.common.rows * stride + inner;
  T* to = static_cast<T*>(args.common.y) + column;
  if constexpr (!kInPlace) {
    const T* from = static_cast<const T*>(args.common.data) + column;
#pragma unroll 4
    for (int64_t row = own; row < args.common.rows; row += shares) to[row * stride] = from[row * stride];
  }

  int64_t rest = inner, at = 0, index_at = 0;
  for (int d = 0; d < args.dims; ++d) {
    if (d == args.inner_dims) rest = outer;
    const ScatterDim& dim = args.dim[d];
    const int64_t next = quotient(rest, dim.extent), c = rest - next * dim.extent;
    if (c >= dim.indexed) return;
    at += c * dim.stride;
    index_at += c * dim.index_stride;
    rest = next;
  }
  const I* indices = static_cast<const I*>(args.common.indices) + index_at;
  const T* updates = static_cast<const T*>(args.common.updates) + at;
  constexpr int kAhead = 16;  // indices loaded together
  for (int64_t e = 0; e < args.common.count; e += kAhead) {
    int64_t row[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      row[k] = -1;
      if (e + k >= args.common.count) continue;
      const I index = indices[(e + k) * args.index_step];
      if constexpr (kDrop) {
        const bool inside = index >= I(0) && static_cast<uint64_t>(index) < static_cast<uint64_t>(args.common.rows);
        if (inside) row[k] = static_cast<int64_t>(index);
      } else {
        row[k] = wrap_index(index, args.common.rows);
      }
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (row[k] >= 0 && (row[k] & (shares - 1)) == own) {
        combine_into<Combine>(to + row[k] * stride, updates + (e + k) * args.step);
      }
    }
  }
}

// The rows and columns of y that a warp owns.
template <typename Combine, typename T>
class ScatterBlock {
 public:
  __device__ explicit ScatterBlock(const ScatterNdArgs& args) : args_(args.common), lane_(threadIdx.x % 32) {
    const int64_t warp = (blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x) / 32;
    const int64_t block = quotient(warp, args.chunks), left = args_.rows - block * args.block_rows;
    first_ = block * args.block_rows;
    rows_ = left < args.block_rows ? left : args.block_rows;
    column_ = (warp - block * args.chunks) * args.chunk;
    columns_ = args_.inner - column_ < args.chunk ? args_.inner - column_ : args.chunk;
  }

  __device__ void copy() const {
    const bool whole = columns_ == args_.inner;  // if so, all rows are contiguous
    const int64_t lines = whole ? 1 : rows_, length = whole ? rows_ * columns_ : columns_;
    for (int64_t line = 0; line < lines; ++line) {
      const int64_t at = (first_ + line) * args_.inner + column_;
      const T* from = static_cast<const T*>(args_.data) + at;
      T* to = static_cast<T*>(args_.y) + at;
#pragma unroll 4
      for (int64_t i = lane_; i < length; i += 32) to[i] = from[i];
    }
    __syncwarp();  // other lanes apply updates to elements that this lane copied
  }
  // Lane l passes the row of update `number` + l as `row`, or -1 if it has no update. Applies the updates whose rows
  // the warp owns. Called by whole warps.
  __device__ void apply(int64_t number, int64_t row) const {
    const bool mine = row >= first_ && row < first_ + rows_;
    for (uint32_t left = __ballot_sync(~0u, mine); left != 0; left &= left - 1) {
      const int from = __ffs(left) - 1;
      const int64_t to = __shfl_sync(~0u, row, from);
      const T* update = static_cast<const T*>(args_.updates) + (number + from) * args_.inner + column_;
      T* y = static_cast<T*>(args_.y) + to * args_.inner + column_;
      for (int64_t i = lane_; i < columns_; i += 32) combine_into<Combine>(y + i, update + i);
    }
  }

 private:
  const ScatterArgs& args_;
  const int lane_;
  int64_t first_, rows_, column_, columns_;  // the warp owns nothing if rows_ is not positive
};

// y[index tuple i, :] <- updates[i, :] for every tuple i. A warp checks 32 tuples at a time, one per lane. If a tuple
// refers to a row that the warp owns, all lanes together apply the columns of the tuple's update. Blocks have whole
// warps, and dynamic shared memory for kScatterChunk row indices.
template <typename Combine, typename T, typename I, bool kInPlace = false>
__device__ inline void scatter_nd(const ScatterNdArgs& args) {
  extern __shared__ __align__(16) uint8_t raw_shared[];
  auto* rows = reinterpret_cast<int64_t*>(raw_shared);
  const ScatterBlock<Combine, T> own(args);
  if constexpr (!kInPlace) own.copy();
  const int64_t count = args.common.count;
  for (int64_t first = 0; first < count; first += kScatterChunk) {
    __syncthreads();  // the previous rows have been read
    for (int e = threadIdx.x; e < kScatterChunk; e += blockDim.x) {
      int64_t row = -1;
      if (first + e < count) {
        const I* tuple = static_cast<const I*>(args.common.indices) + (first + e) * args.depth;
        row = 0;
        for (int d = 0; d < args.depth; ++d) row = row * args.extent[d] + wrap_index(tuple[d], args.extent[d]);
      }
      rows[e] = row;
    }
    __syncthreads();
#pragma unroll 4
    for (int e = 0; e < kScatterChunk && first + e < count; e += 32) own.apply(first + e, rows[e + threadIdx.x % 32]);
  }
}

}  // namespace heddle::tile::cuda
