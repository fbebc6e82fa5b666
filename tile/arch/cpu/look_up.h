// Entries of tables that are held in registers.
#pragma once

#include "tile/arch/cpu/vec.h"

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

// 256 bytes as words, the first byte in the lowest bits.
template <uint64_t... Words>
alignas(64) __attribute__((visibility("hidden"))) inline constexpr uint64_t byte_table[sizeof...(Words)] = {Words...};

namespace detail {

// The word of the table that contains the byte `index` of each lane, in the low 8 bits of the lane.
template <int W>
TILE_INLINE vec<int32_t, W> look_up_words(const int32_t* table, vec<int32_t, W> index) {
  using V = vec<int32_t, W>;
  const V word = index >> 2;  // some bits above those that count
#if TILE_AVX512 && !defined(__clang__)
  if constexpr (W == 16) {
    const auto half = [&](int at) __attribute__((always_inline))->V {
      return {__builtin_shuffle(load<W>(table + at).v, load<W>(table + at + W).v, word.v)};
    };
    return select((index & 128) != zero<int32_t, W>(), half(2 * W), half(0));
  } else
#endif
#if TILE_AVX2
      if constexpr (W == 8) {
    typedef int ints __attribute__((vector_size(32)));
    const auto part = [&](int at) __attribute__((always_inline))->V {
      return {(typename V::native)__builtin_ia32_permvarsi256((ints)load<W>(table + at * W).v, (ints)word.v)};
    };
    // Takes the second where a bit of the index is set.
    const auto choose = [&](int bit, V clear, V set) __attribute__((always_inline)) {
      return select((index << (31 - bit)) < 0, set, clear);
    };
    const V low = choose(6, choose(5, part(0), part(1)), choose(5, part(2), part(3)));
    return choose(7, low, choose(6, choose(5, part(4), part(5)), choose(5, part(6), part(7))));
  } else
#endif
  {
    return map_lanes(word, [&](int32_t at) { return table[at & 63]; });
  }
}

}  // namespace detail

// The bytes of a table at `index`, of which the low 8 bits count, as numbers of type T.
template <typename T, int W>
TILE_INLINE vec<int32_t, W> look_up_bytes(const uint64_t (&table)[32], vec<int32_t, W> index) {
  if constexpr (is_wide<int32_t, W>) {
    return {look_up_bytes<T>(table, index.lo), look_up_bytes<T>(table, index.hi)};
  } else {
    const vec<int32_t, W> words = detail::look_up_words(reinterpret_cast<const int32_t*>(table), index);
    const vec<int32_t, W> first = words << ((~index & 3) << 3);  // the byte in the highest bits
    if constexpr (is_signed<T>) {
      return first >> 24;
    } else {
      return bit_cast<int32_t>(bit_cast<uint32_t>(first) >> 24u);
    }
  }
}

}  // namespace heddle::tile
