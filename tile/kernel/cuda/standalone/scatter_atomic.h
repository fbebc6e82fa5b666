// Scatters that add with atomic operations, after a launch that copied or filled y. The order of additions to one
// element differs from run to run, and so do the last bits of a sum of floats.
#pragma once

#include "tile/arch/sm80/atomic.h"
#include "tile/kernel/cuda/standalone/scatter_rows.h"

namespace heddle::tile::cuda {

// The launch that copies or fills y.
template <ScatterFrom kFrom>
__device__ inline void scatter_begin(const ScatterUpdatesArgs& args) {
  scatter_begin<kFrom>(args, blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x,
                       gridDim.x * static_cast<int64_t>(blockDim.x));
}

// A thread adds V neighbouring columns of Run consecutive updates. It first adds those of the same row in registers, so
// that a row that has all updates gets few atomic operations.
template <int V, int Run, typename T, typename Rows>
__device__ inline void scatter_add(const ScatterUpdatesArgs& args) {
  const int64_t number = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  const int64_t vectors = args.common.inner / V, run = quotient(number, vectors);
  const int64_t column = (number - run * vectors) * V, first = run * Run;
  constexpr int kAhead = Run < 8 ? Run : 8;  // updates loaded together
  const T* updates = static_cast<const T*>(args.common.updates) + column;
  T* y = static_cast<T*>(args.common.y) + column;
  const Rows row_of{args};
  T sum[V];
  int64_t last = -1;
  const auto flush = [&] {
    if (last >= 0) sm80::add_at<V>(y + last * args.common.inner, sum);
  };
  for (int64_t e = first; e < first + Run && e < args.common.count; e += kAhead) {
    int64_t row[kAhead];
    vec<T, V> update[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      row[k] = e + k < args.common.count ? row_of(e + k) : -1;
      if (row[k] >= 0) update[k] = load<V, V>(updates + (e + k) * args.common.inner);
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if (row[k] < 0) continue;
      const bool same = row[k] == last;
      if (!same) flush();
#pragma unroll
      for (int i = 0; i < V; ++i) sum[i] = same ? sum_of::apply(sum[i], update[k][i]) : update[k][i];
      last = row[k];
    }
  }
  flush();
}

}  // namespace heddle::tile::cuda
