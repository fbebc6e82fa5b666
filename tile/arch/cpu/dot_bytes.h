// Sums of products of unsigned and signed bytes, four neighbours to a lane of 32 bits, without saturation.
#pragma once

#include "tile/arch/cpu/convert.h"
#include "tile/arch/cpu/isa.h"

// True if there are instructions that multiply bytes and add neighbours.
#define TILE_BYTE_DOT TILE_AVX2

#if TILE_AVX512 && defined(__AVX512VNNI__)
#define TILE_VNNI 1
#else
#define TILE_VNNI 0
#endif

namespace heddle::tile {

#if TILE_BYTE_DOT

namespace detail {

using Bytes = vec<int32_t, kLanes>;
typedef short shorts __attribute__((vector_size(kVectorBytes)));

#if !TILE_VNNI
// Pairs of products of unsigned bytes in `u` and signed bytes in `s`.
TILE_INLINE shorts byte_pairs(Bytes u, Bytes s) {
  typedef char chars __attribute__((vector_size(kVectorBytes)));
#if TILE_AVX512
#if defined(__clang__)
  return (shorts)__builtin_ia32_pmaddubsw512((chars)u.v, (chars)s.v);
#else
  return (shorts)__builtin_ia32_pmaddubsw512_mask((chars)u.v, (chars)s.v, shorts{}, -1);
#endif
#else
  return (shorts)__builtin_ia32_pmaddubsw256((chars)u.v, (chars)s.v);
#endif
}

// Sums of pairs, times `factor`.
TILE_INLINE Bytes pair_sums(shorts pairs, short factor) {
#if TILE_AVX512
#if defined(__clang__)
  return {(Bytes::native)__builtin_ia32_pmaddwd512(pairs, factor - shorts{})};
#else
  typedef int ints __attribute__((vector_size(64)));
  return {(Bytes::native)__builtin_ia32_pmaddwd512_mask(pairs, factor - shorts{}, ints{}, -1)};
#endif
#else
  return {(Bytes::native)__builtin_ia32_pmaddwd256(pairs, factor - shorts{})};
#endif
}
#endif

}  // namespace detail

// The running sums of the lanes, after start(). It has no initialisers, which would keep arrays of it out of registers.
// The unsigned bytes are below 2^kBits, the signed ones at least -127. After every kSteps calls of add(), finish() must
// be called.
template <int kBits>
class ByteDot {
 public:
  using Bytes = detail::Bytes;

#if TILE_VNNI
  static constexpr int kSteps = 1 << 16;

  TILE_INLINE void start(Bytes sum) {
    sum_ = sum;
  }
  TILE_INLINE void add(Bytes u, Bytes s) {
    typedef int ints __attribute__((vector_size(64)));
#if defined(__clang__)
    sum_.v = (Bytes::native)__builtin_ia32_vpdpbusd512((ints)sum_.v, (ints)u.v, (ints)s.v);
#else
    sum_.v = (Bytes::native)__builtin_ia32_vpdpbusd_v16si((ints)sum_.v, (ints)u.v, (ints)s.v);
#endif
  }
  TILE_INLINE void finish() {}
#else
  // A pair of products is at most 2 * 127 * 15 for 4 bits. Bytes of 8 bits are multiplied in two halves of 4 bits.
  static constexpr int kSteps = kBits == 2 ? 32 : 8;

  TILE_INLINE void start(Bytes sum) {
    sum_ = sum;
    low_ = high_ = detail::shorts{};
  }
  TILE_INLINE void add(Bytes u, Bytes s) {
    const Bytes mask = splat<kLanes>(int32_t(0x0f0f0f0f));
    low_ = low_ + detail::byte_pairs(kBits == 8 ? u & mask : u, s);
    if constexpr (kBits == 8) high_ = high_ + detail::byte_pairs((u >> 4) & mask, s);
  }
  TILE_INLINE void finish() {
    sum_ = sum_ + detail::pair_sums(low_, 1);
    low_ = detail::shorts{};
    if constexpr (kBits == 8) {
      sum_ = sum_ + detail::pair_sums(high_, 16);
      high_ = detail::shorts{};
    }
  }
#endif
  TILE_INLINE Bytes sum() const {
    return sum_;
  }

 private:
  Bytes sum_;
#if !TILE_VNNI
  detail::shorts low_, high_;
#endif
};

#endif

}  // namespace heddle::tile
