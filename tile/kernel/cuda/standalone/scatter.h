// Scatters with few updates: copies of a tensor in which some elements are replaced by updates or combined with
// updates. If an element has several updates, they are applied in row-major order: one thread owns the element and
// applies all of the element's updates in order. So results are the same in every run, and no block waits for another.
// Negative indices count from the end. Indices out of range are clamped, so that nothing outside of the tensor is
// written. With `kDrop`, updates with negative indices or indices out of range are skipped instead. With
// ScatterFrom::kPlace, elements without an update are not accessed.
#pragma once

#include "tile/core/cuda_standalone.h"
#include "tile/op/cuda/shuffle.h"
#include "tile/op/cuda/stitch.h"

namespace heddle::tile::cuda {

// The combiner that replaces an element by its update.
struct replaced {};

// V neighbouring elements of one or several updates, combined in the type of computation.
template <typename Combine, typename T, int V>
struct Combined {
  using Element = compute_t<T>;
  vec<Element, V> x;
  static __device__ Combined load_from(const T* from) { return {load<V, V>(from)}; }
  static __device__ Combined read(const Element* from) { return {load<V, V>(from)}; }
  __device__ void write(Element* to) const { store<V>(to, x); }
  __device__ void add(const Combined& later) {
    x = map_lanes(x, later.x, [](auto a, auto b) { return Combine::apply(a, b); });
  }
  // Combines them with an element of y.
  __device__ void apply_to(T* y) const {
    Combined result = load_from(y);
    result.add(*this);
    store<V>(y, result.x);
  }
};
template <typename T>
struct Combined<replaced, T, 1> {
  using Element = T;
  T x;
  static __device__ Combined load_from(const T* from) { return {*from}; }
  static __device__ Combined read(const T* from) { return {*from}; }
  __device__ void write(T* to) const { *to = x; }
  __device__ void add(const Combined& later) { x = later.x; }
  __device__ void apply_to(T* y) const { *y = x; }
};

template <typename T>
__device__ inline T fill_of(const ScatterArgs& args) {
  T value;
  TILE_COPY(&value, args.fill, sizeof(T));
  return value;
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
template <ScatterFrom kFrom, typename Combine, typename T, typename I, bool kDrop>
__device__ inline void scatter_elements(const ScatterElementsArgs& args) {
  const int64_t number = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (number >= args.threads) return;
  const int64_t stride = args.common.inner, shares = int64_t{1} << args.shares;
  const int64_t above = quotient(number, stride), inner = number - above * stride;
  const int64_t outer = above >> args.shares, own = above & (shares - 1);
  const int64_t column = outer * args.common.rows * stride + inner;
  T* to = static_cast<T*>(args.common.y) + column;
  if constexpr (kFrom == ScatterFrom::kData) {
    const T* from = static_cast<const T*>(args.common.data) + column;
#pragma unroll 4
    for (int64_t row = own; row < args.common.rows; row += shares) to[row * stride] = from[row * stride];
  } else if constexpr (kFrom == ScatterFrom::kValue) {
    const T value = fill_of<T>(args.common);
    for (int64_t row = own; row < args.common.rows; row += shares) to[row * stride] = value;
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
  using Value = Combined<Combine, T, 1>;
  constexpr int kAhead = 16;  // indices loaded together
  Value sum;                  // of the last row's consecutive updates
  int64_t last = -1;
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
      if (row[k] < 0 || (row[k] & (shares - 1)) != own) continue;
      const Value update = Value::load_from(updates + (e + k) * args.step);
      if (row[k] == last) {
        sum.add(update);
        continue;
      }
      if (last >= 0) sum.apply_to(to + last * stride);
      sum = update, last = row[k];
    }
  }
  if (last >= 0) sum.apply_to(to + last * stride);
}

// The rows and columns of y that a warp owns.
template <ScatterFrom kFrom, typename Combine, typename T>
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

  __device__ void begin() const {
    const bool whole = columns_ == args_.inner;  // if so, all rows are contiguous
    const int64_t lines = whole ? 1 : rows_, length = whole ? rows_ * columns_ : columns_;
    for (int64_t line = 0; line < lines; ++line) {
      const int64_t at = (first_ + line) * args_.inner + column_;
      T* to = static_cast<T*>(args_.y) + at;
      if constexpr (kFrom == ScatterFrom::kData) {
        const T* from = static_cast<const T*>(args_.data) + at;
#pragma unroll 4
        for (int64_t i = lane_; i < length; i += 32) to[i] = from[i];
      } else {
        const T value = fill_of<T>(args_);
        for (int64_t i = lane_; i < length; i += 32) to[i] = value;
      }
    }
    __syncwarp();  // other lanes apply updates to elements that this lane wrote
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
      for (int64_t i = lane_; i < columns_; i += 32) Combined<Combine, T, 1>::load_from(update + i).apply_to(y + i);
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
template <ScatterFrom kFrom, typename Combine, typename T, typename I>
__device__ inline void scatter_nd(const ScatterNdArgs& args) {
  extern __shared__ __align__(16) uint8_t raw_shared[];
  auto* rows = reinterpret_cast<int64_t*>(raw_shared);
  const ScatterBlock<kFrom, Combine, T> own(args);
  if constexpr (kFrom != ScatterFrom::kPlace) own.begin();
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
