// Loads for generated kernels. The data stays in registers in its memory format. Some loads carry a cache hint: the
// data is never read again, or it is read again soon.
#pragma once

#include "tile/arch/sm80/stream.h"
#include "tile/arch/vec.h"

namespace heddle::tile {

// W neighbouring elements in their memory format. 16-bit values take half as many registers as converted ones.
template <typename T, int W>
struct stored {
  T e[W];
};
template <typename T, int W>
TILE_INLINE vec<compute_t<T>, W> decoded(const stored<T, W>& raw) {
  vec<compute_t<T>, W> r;
  each_lane<W>([&](int i) { r.set(i, detail::decode(raw.e[i])); });
  return r;
}

// Makes the compiler decode the elements again where they are read next. It would keep the decoded ones, in twice as
// many registers.
template <typename T, int W>
TILE_INLINE void forget_decoded(stored<T, W>& raw) {
  if constexpr (W * sizeof(T) % 4 == 0) {
    struct Words {
      uint32_t word[W * sizeof(T) / 4];
    } words = __builtin_bit_cast(Words, raw);
    sm80::launder(words.word);
    raw = __builtin_bit_cast(stored<T, W>, words);
  }
}

namespace detail {

struct alignas(16) sixteen {
  uint32_t word[4];
};
template <int W, int Aligned, typename T>
inline constexpr bool are_sixteen = W * sizeof(T) == 16 && Aligned >= W;

}  // namespace detail

template <int W, int Aligned = 1, typename T>
TILE_INLINE stored<T, W> load_stored(const T* p) {
  return __builtin_bit_cast(stored<T, W>, detail::load_elements<W, Aligned>(p));
}
// Loads data that is not read again. The L2 evicts it before the kernel's results.
template <int W, int Aligned = 1, typename T>
TILE_INLINE stored<T, W> load_stored_evict_first(const T* p) {
  if constexpr (detail::are_sixteen<W, Aligned, T>) {
    return __builtin_bit_cast(stored<T, W>, sm80::load_stream(reinterpret_cast<const detail::sixteen*>(p)));
  } else {
    return load_stored<W, Aligned>(p);
  }
}
// Loads data that each iteration of a loop reads again from the L1. The data takes no registers between iterations.
template <int W, int Aligned = 1, typename T>
TILE_INLINE stored<T, W> load_stored_l1_resident(const T* p) {
  if constexpr (detail::are_sixteen<W, Aligned, T>) {
    return __builtin_bit_cast(stored<T, W>, sm80::load_here(reinterpret_cast<const detail::sixteen*>(p)));
  } else {
    return load_stored<W, Aligned>(p);
  }
}
template <int W, int Aligned = 1, typename T>
TILE_INLINE vec<compute_t<T>, W> load_evict_first(const T* p) {
  return decoded(load_stored_evict_first<W, Aligned>(p));
}
template <int W, int Aligned = 1, typename T>
TILE_INLINE vec<compute_t<T>, W> load_l1_resident(const T* p) {
  return decoded(load_stored_l1_resident<W, Aligned>(p));
}

// Prefetches `elements` neighbouring elements from p on, which `threads` threads will read later. Each thread
// prefetches every `threads`-th line of 128 bytes, starting with line `lane`.
template <typename T>
TILE_INLINE void prefetch_part(const T* p, int elements, int lane, int threads) {
  constexpr int Line = 128 / sizeof(T);
  for (int at = lane * Line; at < elements; at += threads * Line) sm80::prefetch(p + at);
  if (lane == 0) sm80::prefetch(p + elements - 1);  // the last line, in case p is not at the start of a line
}

}  // namespace heddle::tile
