// Entries of a table that is held in registers.
#pragma once

#include "tile/arch/cpu/lanes.h"

namespace heddle::tile {

// Returns table[index modulo N * W] for each lane. One or two registers take an instruction or two.
template <int N, int W>
TILE_INLINE vec<float, W> look_up(const vec<float, W> (&table)[N], vec<int32_t, W> index) {
#if !defined(__clang__)
  if constexpr (N == 1) {
    return {__builtin_shuffle(table[0].v, index.v)};
  } else if constexpr (N == 2) {
    return {__builtin_shuffle(table[0].v, table[1].v, index.v)};
  }
#elif TILE_AVX512
  if constexpr (N == 1) {
    return {__builtin_ia32_permvarsf512(table[0].v, index.v)};
  } else if constexpr (N == 2) {
    return {__builtin_ia32_vpermi2varps512(table[0].v, index.v, table[1].v)};
  }
#endif
  vec<float, W> result = table[0];
  static_for<W>([&](auto lane) {
    const int32_t at = index[lane] & (N * W - 1);
    result.set(lane, table[at / W][at % W]);
  });
  return result;
}

}  // namespace heddle::tile
