// Exchanges values of any type between the threads of a warp.
#pragma once

#include "tile/arch/cuda/warp.h"
#include "tile/arch/vec.h"

#if defined(__CUDACC_RTC__)
#define TILE_COPY memcpy
#else
#define TILE_COPY __builtin_memcpy
#endif

namespace heddle::tile {

namespace detail {

template <typename T, typename F>
TILE_INLINE T each_word(T x, F f) {
  constexpr int kWords = (int(sizeof(T)) + 3) / 4;
  uint32_t words[kWords] = {};
  TILE_COPY(words, &x, sizeof(T));
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = f(words[i]);
  TILE_COPY(&x, words, sizeof(T));
  return x;
}

}  // namespace detail

template <typename T>
TILE_INLINE T shuffle(const T& x, int from) {
  return detail::each_word(x, [&](uint32_t w) { return __shfl_sync(all_lanes, w, from); });
}
template <typename T>
TILE_INLINE T shuffle_xor(const T& x, int by) {
  return detail::each_word(x, [&](uint32_t w) { return __shfl_xor_sync(all_lanes, w, by); });
}
template <typename T>
TILE_INLINE T shuffle_up(const T& x, int by, int width) {
  return detail::each_word(x, [&](uint32_t w) { return __shfl_up_sync(all_lanes, w, by, width); });
}

}  // namespace heddle::tile
