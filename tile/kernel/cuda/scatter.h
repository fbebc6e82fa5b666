// Copies of a tensor with some elements replaced by, or combined with, updates. Duplicates apply in row-major order: an
// element of the result belongs to one thread, which copies it and goes through all updates of its column, so results do
// not depend on the run and no thread waits for another. Indices count from the end where they are negative; what lies
// outside is clamped, so that nothing outside is written.
#pragma once

#include "tile/core/cuda_separate.h"
#include "tile/op/cuda/stitch.h"

namespace heddle::tile::cuda {

// The combiner that keeps the update alone.
struct replaced {};

template <typename Combine, typename T>
__device__ inline void combine_into(T* to, const T* update) {
  if constexpr (is_same<Combine, replaced>) {
    *to = *update;
  } else {
    store(to, splat<1>(Combine::apply(load<1>(to).v, load<1>(update).v)));
  }
}

// The part of y that a thread has.
template <typename Combine, typename T>
class ScatterShare {
 public:
  __device__ explicit ScatterShare(const ScatterArgs& args)
      : args_(args), at_(blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x) {
    const int64_t above = quotient(at_, args.inner);
    inner_ = at_ - above * args.inner;
    outer_ = above >> args.shares;
    own_ = above & ((int64_t{1} << args.shares) - 1);
  }
  __device__ bool exists() const { return at_ < args_.threads; }
  __device__ int64_t inner() const { return inner_; }
  __device__ int64_t outer() const { return outer_; }

  __device__ void copy() const {
    const T* from = static_cast<const T*>(args_.data) + first();
    T* to = static_cast<T*>(args_.y) + first();
#pragma unroll 4
    for (int64_t row = own_; row < args_.rows; row += int64_t{1} << args_.shares) {
      to[row * args_.inner] = from[row * args_.inner];
    }
  }
  __device__ void apply(int64_t row, const T* update) const {
    const int64_t mask = (int64_t{1} << args_.shares) - 1;
    if ((row & mask) != own_) return;
    combine_into<Combine>(static_cast<T*>(args_.y) + first() + row * args_.inner, update);
  }

  // Divisions of 64 bits take three times as long.
  static __device__ int64_t quotient(int64_t a, int64_t b) {
    if ((a | b) >> 32 == 0) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
    return a / b;
  }

 private:
  __device__ int64_t first() const { return outer_ * args_.rows * args_.inner + inner_; }

  const ScatterArgs& args_;
  int64_t at_, inner_, outer_, own_;
};

// y[i0, ..., index, ...] <- updates[i0, ..., i, ...] for every position of the indices, whose shape lies within that of
// the data apart from the dimension of the rows.
template <typename Combine, typename T, typename I>
__device__ inline void scatter_elements(const ScatterElementsArgs& args) {
  const ScatterShare<Combine, T> share(args.common);
  if (!share.exists()) return;
  share.copy();
  int64_t rest = share.inner(), at = 0;
  for (int d = 0; d < args.dims; ++d) {
    if (d == args.inner_dims) rest = share.outer();
    const ScatterDim& dim = args.dim[d];
    const int64_t above = share.quotient(rest, dim.extent), c = rest - above * dim.extent;
    if (c >= dim.indexed) return;
    at += c * dim.stride;
    rest = above;
  }
  const I* indices = static_cast<const I*>(args.common.indices) + at;
  const T* updates = static_cast<const T*>(args.common.updates) + at;
  constexpr int kAhead = 4;  // indices under way
  for (int64_t e = 0; e < args.common.count; e += kAhead) {
    int64_t row[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      row[k] = e + k < args.common.count ? wrap_index(indices[(e + k) * args.step], args.common.rows) : -1;
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (row[k] >= 0) share.apply(row[k], updates + (e + k) * args.step);
    }
  }
}

// y[index tuple, :] <- updates[i, :] for every tuple. Dynamic shared memory: kScatterChunk rows.
template <typename Combine, typename T, typename I>
__device__ inline void scatter_nd(const ScatterNdArgs& args) {
  extern __shared__ __align__(16) uint8_t raw_shared[];
  auto* rows = reinterpret_cast<int64_t*>(raw_shared);
  const ScatterShare<Combine, T> share(args.common);
  if (share.exists()) share.copy();
  const int64_t count = args.common.count, inner = args.common.inner;
  const T* update = static_cast<const T*>(args.common.updates) + share.inner();
  for (int64_t first = 0; first < count; first += kScatterChunk) {
    const int n = static_cast<int>(count - first < kScatterChunk ? count - first : kScatterChunk);
    __syncthreads();  // the rows before are read
    for (int e = threadIdx.x; e < n; e += blockDim.x) {
      const I* tuple = static_cast<const I*>(args.common.indices) + (first + e) * args.depth;
      int64_t row = 0;
      for (int d = 0; d < args.depth; ++d) row = row * args.extent[d] + wrap_index(tuple[d], args.extent[d]);
      rows[e] = row;
    }
    __syncthreads();
    if (!share.exists()) continue;
#pragma unroll 4
    for (int e = 0; e < n; ++e) share.apply(rows[e], update + (first + e) * inner);
  }
}

}  // namespace heddle::tile::cuda
