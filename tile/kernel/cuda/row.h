// Moves neighbouring elements of a row between memory and registers, for epilogues and loaders. Accesses are as wide as
// the alignment of the elements allows.
#pragma once

#include "tile/arch/sm80/stream.h"
#include "tile/core/types.h"

namespace heddle::tile::cuda {

template <typename T, int W>
struct alignas(sizeof(T) * W) Neighbours {
  T x[W];
};

// The elements of one load, as words. The compiler keeps words in registers even if threads extract elements at
// different positions.
template <typename T, int W>
struct alignas(sizeof(T) * W) PieceWords {
  static constexpr int kBytes = sizeof(T) * W, kWord = kBytes < 4 ? kBytes : 4;
  using Word = uint_t<kWord>;
  Word x[kBytes / kWord];

  __device__ T element(int i) const {
    if constexpr (sizeof(T) >= kWord) {
      struct Parts {
        Word x[sizeof(T) / kWord];
      } parts;
#pragma unroll
      for (int j = 0; j < int(sizeof(T)) / kWord; ++j) parts.x[j] = x[i * int(sizeof(T)) / kWord + j];
      return __builtin_bit_cast(T, parts);
    } else {
      const int at = i * int(sizeof(T));
      return __builtin_bit_cast(T, static_cast<uint_t<sizeof(T)>>(x[at / kWord] >> (8 * (at % kWord))));
    }
  }
};

namespace detail {

// The number of elements in 16 bytes; 1 if W elements have fewer bytes.
template <typename T, int W>
inline constexpr int sixteen_bytes = W* int(sizeof(T)) >= 16 && 16 % sizeof(T) == 0 ? 16 / int(sizeof(T)) : 1;

template <int N, typename T>
__device__ inline bool is_multiple(const T* p) {
  return reinterpret_cast<uint64_t>(p) % (N * sizeof(T)) == 0;
}

template <int N, int W, typename T>
__device__ inline void load_parts(T (&v)[W], const T* p) {
#pragma unroll
  for (int i = 0; i < W; i += N) {
    const auto part = *reinterpret_cast<const Neighbours<T, N>*>(p + i);
#pragma unroll
    for (int j = 0; j < N; ++j) v[i + j] = part.x[j];
  }
}
template <int N, int W, typename T>
__device__ inline void store_parts(T* p, const T (&v)[W]) {
  constexpr int kWords = N * static_cast<int>(sizeof(T)) / 4, kInWord = 4 / static_cast<int>(sizeof(T));
#pragma unroll
  for (int i = 0; i < W; i += N) {
    if constexpr (kInWord > 0 && (kWords == 2 || kWords == 4)) {
      uint32_t words[kWords] = {};
#pragma unroll
      for (int j = 0; j < N; ++j) {
        words[j / kInWord] |= static_cast<uint32_t>(__builtin_bit_cast(uint_t<sizeof(T)>, v[i + j]))
                              << 8 * sizeof(T) * (j % kInWord);
      }
      sm80::store_words(p + i, words);
    } else {
      Neighbours<T, N> part;
#pragma unroll
      for (int j = 0; j < N; ++j) part.x[j] = v[i + j];
      *reinterpret_cast<Neighbours<T, N>*>(p + i) = part;
    }
  }
}

}  // namespace detail

// Loads v[0..n) from p, with 1 <= n <= W. The other elements of v become arbitrary values. If n = W, p must be aligned
// to Alignment elements, unless Anywhere is set.
template <int Alignment, bool Anywhere = false, int W, typename T>
__device__ inline void load_row(T (&v)[W], const T* p, int n) {
  constexpr int N = Alignment < W ? Alignment : W, kWide = detail::sixteen_bytes<T, W>;
  if constexpr (Anywhere && kWide > N) {
    if (n == W && detail::is_multiple<kWide>(p)) return detail::load_parts<kWide>(v, p);
  }
  if constexpr (N > 1) {
    if (n == W && (!Anywhere || detail::is_multiple<N>(p))) return detail::load_parts<N>(v, p);
  }
#pragma unroll
  for (int i = 0; i < W; ++i) v[i] = p[i < n ? i : 0];
}

// The source of the first matrix that an epilogue reads: memory, unless a kernel provides another source.
struct FromMemory {
  template <int Alignment, bool Anywhere = false, int W, typename T>
  __device__ void load(T (&v)[W], const T* p, int n) const {
    load_row<Alignment, Anywhere>(v, p, n);
  }
};

// A source that is a pair of elements of 8 or 16 bits in the low bits of one of the kernel's registers.
struct FromRegister {
  uint32_t pair;
  template <int Alignment, bool Anywhere = false, typename T>
  __device__ void load(T (&v)[2], const T*, int) const {
    using Bits = uint_t<sizeof(T)>;
    v[0] = __builtin_bit_cast(T, static_cast<Bits>(pair));
    v[1] = __builtin_bit_cast(T, static_cast<Bits>(pair >> (8 * sizeof(T))));
  }
};

// Stores v[0..n) to p. The requirements for p are those of load_row().
template <int Alignment, bool Anywhere = false, int W, typename T>
__device__ inline void store_row(T* p, const T (&v)[W], int n) {
  constexpr int N = Alignment < W ? Alignment : W, kWide = detail::sixteen_bytes<T, W>;
  if constexpr (Anywhere && kWide > N) {
    if (n == W && detail::is_multiple<kWide>(p)) return detail::store_parts<kWide>(p, v);
  }
  if constexpr (N > 1) {
    if (n == W && (!Anywhere || detail::is_multiple<N>(p))) return detail::store_parts<N>(p, v);
  }
#pragma unroll
  for (int i = 0; i < W; ++i) {
    if (i < n) p[i] = v[i];
  }
}

}  // namespace heddle::tile::cuda
