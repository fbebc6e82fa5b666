// Neighbours of a row between memory and registers, in accesses as wide as their alignment allows. For epilogues and
// loaders.
#pragma once

#include "tile/core/types.h"

namespace heddle::tile::cuda {

template <typename T, int W>
struct alignas(sizeof(T) * W) Neighbours {
  T x[W];
};

// v[0..n) from p, 1 <= n <= W; the others stay undefined. p is a multiple of Alignment elements where n = W.
template <int Alignment, int W, typename T>
__device__ inline void load_row(T (&v)[W], const T* p, int n) {
  constexpr int N = Alignment < W ? Alignment : W;
  if (N > 1 && n == W) {
#pragma unroll
    for (int i = 0; i < W; i += N) {
      const auto part = *reinterpret_cast<const Neighbours<T, N>*>(p + i);
#pragma unroll
      for (int j = 0; j < N; ++j) v[i + j] = part.x[j];
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < W; ++i) v[i] = p[i < n ? i : 0];
}

// p[0..n) from v.
template <int Alignment, int W, typename T>
__device__ inline void store_row(T* p, const T (&v)[W], int n) {
  constexpr int N = Alignment < W ? Alignment : W;
  if (N > 1 && n == W) {
#pragma unroll
    for (int i = 0; i < W; i += N) {
      Neighbours<T, N> part;
#pragma unroll
      for (int j = 0; j < N; ++j) part.x[j] = v[i + j];
      *reinterpret_cast<Neighbours<T, N>*>(p + i) = part;
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < W; ++i) {
    if (i < n) p[i] = v[i];
  }
}

}  // namespace heddle::tile::cuda
