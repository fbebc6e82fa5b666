// Entries of tables that the L1 cache holds.
#pragma once

#include "tile/op/arith.h"

namespace heddle::tile::cuda {

// 256 bytes as words, the first byte in the lowest bits.
template <uint64_t... Words>
alignas(128) __device__ constexpr uint64_t byte_table[sizeof...(Words)] = {Words...};

// The bytes of a table at `index`, of which the low 8 bits count, as numbers of type T. The table is two lines of the
// cache, so a warp's loads take at most two cycles, whatever its indices are.
template <typename T, int W>
__device__ inline vec<int32_t, W> look_up_cached(const uint64_t (&table)[32], vec<int32_t, W> index) {
  const T* const bytes = reinterpret_cast<const T*>(table);
  return map_lanes(index, [=](int32_t at) { return static_cast<int32_t>(bytes[at & 255]); });
}

}  // namespace heddle::tile::cuda
