// Elementary functions on the vectors of a CPU.
#pragma once

#include "tile/arch/cpu/vec.h"
#include "tile/op/float_math.h"

namespace heddle::tile {

// Square root, correctly rounded.
template <typename T, int W>
TILE_INLINE vec<T, W> sqrt(vec<T, W> a) {
  if constexpr (is_wide<T, W>) {
    return {sqrt(a.lo), sqrt(a.hi)};
#if TILE_AVX512 && defined(__clang__)
  } else if constexpr (is_same<T, float> && W == 16) {
    return {__builtin_ia32_sqrtps512(a.v, 4)};
  } else if constexpr (is_same<T, double> && W == 8) {
    return {__builtin_ia32_sqrtpd512(a.v, 4)};
#elif TILE_AVX512
  } else if constexpr (is_same<T, float> && W == 16) {
    return {__builtin_ia32_sqrtps512_mask(a.v, a.v, uint16_t(-1), 4)};
  } else if constexpr (is_same<T, double> && W == 8) {
    return {__builtin_ia32_sqrtpd512_mask(a.v, a.v, uint8_t(-1), 4)};
#endif
#if TILE_AVX2
  } else if constexpr (is_same<T, float> && W == 8) {
    return {__builtin_ia32_sqrtps256(a.v)};
  } else if constexpr (is_same<T, double> && W == 4) {
    return {__builtin_ia32_sqrtpd256(a.v)};
#endif
#if defined(__SSE2__)
  } else if constexpr (is_same<T, float> && W == 4) {
    return {__builtin_ia32_sqrtps(a.v)};
  } else if constexpr (is_same<T, double> && W == 2) {
    return {__builtin_ia32_sqrtpd(a.v)};
#endif
  } else {
    return map_lanes(a, [](T x) -> T {
      if constexpr (is_same<T, float>) {
        return __builtin_sqrtf(x);
      } else {
        return __builtin_sqrt(x);
      }
    });
  }
}
// 1 / sqrt(x), with two roundings.
template <typename T, int W>
TILE_INLINE vec<T, W> rsqrt(vec<T, W> a) {
  return T(1) / sqrt(a);
}

}  // namespace heddle::tile
