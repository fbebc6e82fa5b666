// Sums of products of small integers that lie side by side in 32-bit lanes, without saturation.
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

namespace detail {

template <int W>
using shorts_of __attribute__((vector_size(W * 4))) = short;
template <int W>
using ints_of __attribute__((vector_size(W * 4))) = int;

// The integer of `Bits` bits at position `at` of each lane, with its sign extended.
template <int Bits, int W>
TILE_INLINE vec<int32_t, W> signed_part(vec<int32_t, W> lanes, int at) {
  return (lanes << (32 - Bits * (at + 1))) >> (32 - Bits);
}

// The sum of the two products of signed 16-bit numbers in each lane, for vector widths with an instruction for it.
#if defined(__SSE2__)
TILE_INLINE ints_of<4> short_products(shorts_of<4> a, shorts_of<4> b) {
  return (ints_of<4>)__builtin_ia32_pmaddwd128(a, b);
}
#endif
#if TILE_AVX2
TILE_INLINE ints_of<8> short_products(shorts_of<8> a, shorts_of<8> b) {
  return (ints_of<8>)__builtin_ia32_pmaddwd256(a, b);
}
#endif
#if TILE_AVX512
TILE_INLINE ints_of<16> short_products(shorts_of<16> a, shorts_of<16> b) {
#if defined(__clang__)
  return (ints_of<16>)__builtin_ia32_pmaddwd512(a, b);
#else
  return (ints_of<16>)__builtin_ia32_pmaddwd512_mask(a, b, ints_of<16>{}, -1);
#endif
}
#endif

#if defined(__SSE2__)
template <int W>
inline constexpr bool has_short_products = W >= 4;
#else
template <int W>
inline constexpr bool has_short_products = false;
#endif

}  // namespace detail

// sum + the two products of signed 16-bit numbers in each lane.
template <int W>
TILE_INLINE vec<int32_t, W> add_short_products(vec<int32_t, W> a, vec<int32_t, W> b, vec<int32_t, W> sum) {
  if constexpr (is_wide<int32_t, W>) {
    return {add_short_products(a.lo, b.lo, sum.lo), add_short_products(a.hi, b.hi, sum.hi)};
#if TILE_VNNI
  } else if constexpr (W == 16) {
    using Ints = detail::ints_of<16>;
#if defined(__clang__)
    return {(typename vec<int32_t, W>::native)__builtin_ia32_vpdpwssd512((Ints)sum.v, (Ints)a.v, (Ints)b.v)};
#else
    return {(typename vec<int32_t, W>::native)__builtin_ia32_vpdpwssd_v16si((Ints)sum.v, (Ints)a.v, (Ints)b.v)};
#endif
#endif
  } else if constexpr (detail::has_short_products<W>) {
    using Shorts = detail::shorts_of<W>;
    return vec<int32_t, W>{(typename vec<int32_t, W>::native)detail::short_products((Shorts)a.v, (Shorts)b.v)} + sum;
  } else {
    for (int i = 0; i < 2; ++i) sum = sum + detail::signed_part<16>(a, i) * detail::signed_part<16>(b, i);
    return sum;
  }
}

// sum + the four products of unsigned bytes in `u` and signed bytes in `s` in each lane.
template <int W>
TILE_INLINE vec<int32_t, W> add_byte_products(vec<int32_t, W> u, vec<int32_t, W> s, vec<int32_t, W> sum) {
  if constexpr (is_wide<int32_t, W>) {
    return {add_byte_products(u.lo, s.lo, sum.lo), add_byte_products(u.hi, s.hi, sum.hi)};
#if TILE_VNNI
  } else if constexpr (W == 16) {
    using Ints = detail::ints_of<16>;
#if defined(__clang__)
    return {(typename vec<int32_t, W>::native)__builtin_ia32_vpdpbusd512((Ints)sum.v, (Ints)u.v, (Ints)s.v)};
#else
    return {(typename vec<int32_t, W>::native)__builtin_ia32_vpdpbusd_v16si((Ints)sum.v, (Ints)u.v, (Ints)s.v)};
#endif
#endif
  } else {
    for (int i = 0; i < 4; ++i) sum = sum + (detail::signed_part<8>(u, i) & 255) * detail::signed_part<8>(s, i);
    return sum;
  }
}

#if TILE_BYTE_DOT

#if !TILE_VNNI
namespace detail {

// Products of unsigned bytes in `u` and signed bytes in `s`, added in pairs to 16-bit sums.
TILE_INLINE shorts_of<kLanes> byte_pairs(vec<int32_t, kLanes> u, vec<int32_t, kLanes> s) {
  typedef char chars __attribute__((vector_size(kVectorBytes)));
  using Shorts = shorts_of<kLanes>;
#if TILE_AVX512
#if defined(__clang__)
  return (Shorts)__builtin_ia32_pmaddubsw512((chars)u.v, (chars)s.v);
#else
  return (Shorts)__builtin_ia32_pmaddubsw512_mask((chars)u.v, (chars)s.v, Shorts{}, -1);
#endif
#else
  return (Shorts)__builtin_ia32_pmaddubsw256((chars)u.v, (chars)s.v);
#endif
}

}  // namespace detail
#endif

// The running sums of the lanes, after start(). It has no initialisers, which would keep arrays of it out of registers.
// The unsigned bytes are below 2^kBits. After every kSteps calls of add(), finish() must be called.
template <int kBits>
class ByteDot {
 public:
  using Bytes = vec<int32_t, kLanes>;

#if TILE_VNNI
  static constexpr int kSteps = 1 << 16;

  TILE_INLINE void start(Bytes sum) {
    sum_ = sum;
  }
  TILE_INLINE void add(Bytes u, Bytes s) {
    sum_ = add_byte_products(u, s, sum_);
  }
  TILE_INLINE void finish() {}
#else
  // The sum of a pair of products is at most 2 * 128 * 15 for 4 bits. Bytes of 8 bits are multiplied in two 4-bit
  // halves.
  static constexpr int kSteps = kBits == 2 ? 32 : 8;

  TILE_INLINE void start(Bytes sum) {
    sum_ = sum;
    low_ = high_ = Shorts{};
  }
  TILE_INLINE void add(Bytes u, Bytes s) {
    const Bytes mask = splat<kLanes>(int32_t(0x0f0f0f0f));
    low_ = low_ + detail::byte_pairs(kBits == 8 ? u & mask : u, s);
    if constexpr (kBits == 8) high_ = high_ + detail::byte_pairs((u >> 4) & mask, s);
  }
  TILE_INLINE void finish() {
    sum_ = add_short_products<kLanes>({(Bytes::native)low_}, splat<kLanes>(int32_t(0x00010001)), sum_);
    low_ = Shorts{};
    if constexpr (kBits == 8) {
      sum_ = add_short_products<kLanes>({(Bytes::native)high_}, splat<kLanes>(int32_t(0x00100010)), sum_);
      high_ = Shorts{};
    }
  }
#endif
  TILE_INLINE Bytes sum() const {
    return sum_;
  }

 private:
  Bytes sum_;
#if !TILE_VNNI
  using Shorts = detail::shorts_of<kLanes>;
  Shorts low_, high_;
#endif
};

#endif

}  // namespace heddle::tile
