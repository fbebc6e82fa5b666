// Fused multiply-add, minimum and maximum, rounding, and reductions over the lanes of a vector.
#pragma once

#include "tile/arch/cpu/convert.h"
#include "tile/arch/cpu/vec_types.h"

namespace heddle::tile {

// Computes a * b with rounding. Compilers cannot contract the product with an addition to a fused multiply-add.
template <typename T, int W>
TILE_INLINE vec<T, W> mul_rounded(vec<T, W> a, vec<T, W> b) {
  if constexpr (is_wide<T, W>) {
    return {mul_rounded(a.lo, b.lo), mul_rounded(a.hi, b.hi)};
  } else if constexpr (TILE_ASSOC_BARRIER && sizeof(a.v) < 16) {
#if TILE_ASSOC_BARRIER
    return {__builtin_assoc_barrier(a.v * b.v)};
#endif
  } else {
    vec<T, W> r = a * b;
    asm("" : TILE_VECTOR_REGISTER(r.v));
    return r;
  }
}

// Computes a * b + c. Rounds once if the machine has FMA instructions, twice in the portable build.
template <typename T, int W>
TILE_INLINE vec<T, W> fma(vec<T, W> a, vec<T, W> b, vec<T, W> c) {
  if constexpr (is_wide<T, W>) {
    return {fma(a.lo, b.lo, c.lo), fma(a.hi, b.hi, c.hi)};
#if TILE_AVX512
  } else if constexpr (is_same<T, float> && W == 16) {
    return {__builtin_ia32_vfmaddps512_mask(a.v, b.v, c.v, uint16_t(-1), 4)};
  } else if constexpr (is_same<T, double> && W == 8) {
    return {__builtin_ia32_vfmaddpd512_mask(a.v, b.v, c.v, uint8_t(-1), 4)};
#endif
#if TILE_AVX2
  } else if constexpr (is_same<T, float> && W == 8) {
    return {__builtin_ia32_vfmaddps256(a.v, b.v, c.v)};
  } else if constexpr (is_same<T, double> && W == 4) {
    return {__builtin_ia32_vfmaddpd256(a.v, b.v, c.v)};
  } else if constexpr (is_same<T, float> && W == 4) {
    return {__builtin_ia32_vfmaddps(a.v, b.v, c.v)};
  } else if constexpr (is_same<T, double> && W == 2) {
    return {__builtin_ia32_vfmaddpd(a.v, b.v, c.v)};
  } else if constexpr (is_same<T, float> && W == 1) {
    return {__builtin_fmaf(a.v, b.v, c.v)};
  } else if constexpr (is_same<T, double> && W == 1) {
    return {__builtin_fma(a.v, b.v, c.v)};
#endif
  } else {
    return a * b + c;
  }
}
template <typename T, int W>
TILE_INLINE vec<T, W> fma(vec<T, W> a, vec<T, W> b, T c) {
  return fma(a, b, splat<W>(c));
}
template <typename T, int W>
TILE_INLINE vec<T, W> fma(vec<T, W> a, T b, vec<T, W> c) {
  return fma(a, splat<W>(b), c);
}
template <typename T, int W>
TILE_INLINE vec<T, W> fma(vec<T, W> a, T b, T c) {
  return fma(a, splat<W>(b), splat<W>(c));
}

// True for lanes that are NaN. Compares vectors with infinity instead of computing a != a. Each of these comparisons
// takes one instruction, but GCC would try to move a != a into every select that produced `a`. The compile time would
// then be exponential in the length of a chain of maxima.
template <typename T, int W>
TILE_INLINE mask<sizeof(T), W> is_nan(vec<T, W> a) {
  if constexpr (W == 1) {
    return a != a;
  } else {
    return ~(a <= T(__builtin_inf()));
  }
}

namespace detail {

// Computes a > b ? a : b, and a < b ? a : b, in one instruction each. If either operand is NaN, the result is b.
template <typename T, int W>
TILE_INLINE vec<T, W> greater_or_second(vec<T, W> a, vec<T, W> b) {
  if constexpr (is_wide<T, W>) {
    return {greater_or_second(a.lo, b.lo), greater_or_second(a.hi, b.hi)};
#if TILE_AVX512 && defined(__clang__)
  } else if constexpr (is_same<T, float> && W == 16) {
    return {__builtin_ia32_maxps512(a.v, b.v, 4)};
#elif TILE_AVX512
  } else if constexpr (is_same<T, float> && W == 16) {
    return {__builtin_ia32_maxps512_mask(a.v, b.v, a.v, uint16_t(-1), 4)};
#endif
#if TILE_AVX2
  } else if constexpr (is_same<T, float> && W == 8) {
    return {__builtin_ia32_maxps256(a.v, b.v)};
#endif
  } else {
    return select(a > b, a, b);
  }
}
template <typename T, int W>
TILE_INLINE vec<T, W> less_or_second(vec<T, W> a, vec<T, W> b) {
  if constexpr (is_wide<T, W>) {
    return {less_or_second(a.lo, b.lo), less_or_second(a.hi, b.hi)};
#if TILE_AVX512 && defined(__clang__)
  } else if constexpr (is_same<T, float> && W == 16) {
    return {__builtin_ia32_minps512(a.v, b.v, 4)};
#elif TILE_AVX512
  } else if constexpr (is_same<T, float> && W == 16) {
    return {__builtin_ia32_minps512_mask(a.v, b.v, a.v, uint16_t(-1), 4)};
#endif
#if TILE_AVX2
  } else if constexpr (is_same<T, float> && W == 8) {
    return {__builtin_ia32_minps256(a.v, b.v)};
#endif
  } else {
    return select(a < b, a, b);
  }
}

}  // namespace detail

// Maximum and minimum. The result is NaN if either operand is NaN. If the first operand is a constant, as in
// max(splat<W>(0.f), x), its NaN check is optimised away and one instruction remains.
template <typename T, int W>
TILE_INLINE vec<T, W> max(vec<T, W> a, vec<T, W> b) {
  const vec<T, W> r = detail::greater_or_second(a, b);
  if constexpr (is_float<T>) {
    return select(is_nan(a), a, r);
  } else {
    return r;
  }
}
template <typename T, int W>
TILE_INLINE vec<T, W> min(vec<T, W> a, vec<T, W> b) {
  const vec<T, W> r = detail::less_or_second(a, b);
  if constexpr (is_float<T>) {
    return select(is_nan(a), a, r);
  } else {
    return r;
  }
}
template <typename T, int W>
TILE_INLINE vec<T, W> max(vec<T, W> a, T b) {
  return max(splat<W>(b), a);
}
template <typename T, int W>
TILE_INLINE vec<T, W> min(vec<T, W> a, T b) {
  return min(splat<W>(b), a);
}

template <typename T, int W>
TILE_INLINE vec<T, W> abs(vec<T, W> a) {
  if constexpr (is_float<T>) {
    using U = uint_t<sizeof(T)>;
    return bit_cast<T>(bit_cast<U>(a) & U(~U(0) >> 1));
  } else if constexpr (is_signed<T>) {
    return select(a < zero<T, W>(), zero<T, W>() - a, a);
  } else {
    return a;
  }
}
// Returns the magnitude of `a` with the sign of `s`.
template <typename T, int W>
TILE_INLINE vec<T, W> copy_sign(vec<T, W> a, vec<T, W> s) {
  using U = uint_t<sizeof(T)>;
  constexpr U sign = U(1) << (8 * sizeof(T) - 1);
  return bit_cast<T>((bit_cast<U>(a) & U(~sign)) | (bit_cast<U>(s) & sign));
}

// Rounds to the nearest integer, ties to even. Without a rounding instruction, adds and subtracts 2^23 (2^52 for
// double). This rounds in the current rounding mode, which is round-to-nearest-even by default.
template <typename T, int W>
TILE_INLINE vec<T, W> round_even(vec<T, W> a) {
  constexpr T big = sizeof(T) == 4 ? T(0x1p23) : T(0x1p52);
#if TILE_AVX512
  if constexpr (is_same<T, float> && W == 16) {
    return {__builtin_ia32_rndscaleps_mask(a.v, 8, a.v, uint16_t(-1), 4)};
  } else
#elif TILE_AVX2
  if constexpr (is_same<T, float> && W == 8) {
    return {(typename vec<T, W>::native)__builtin_ia32_roundps256(a.v, 8)};
  } else
#endif
  {
    const vec<T, W> m = abs(a);
    return select(m < big, copy_sign(m + big - big, a), a);
  }
}
// Rounds to the nearest integer, ties to even. The integers must fit 32 bits.
template <int W>
TILE_INLINE vec<int32_t, W> round_to_int(vec<float, W> a) {
  if constexpr (is_wide<float, W>) {
    return {round_to_int(a.lo), round_to_int(a.hi)};
#if TILE_AVX512
  } else if constexpr (W == 16) {
    typedef int ints __attribute__((vector_size(64)));
    return {(typename vec<int32_t, W>::native)__builtin_ia32_cvtps2dq512_mask(a.v, ints{}, uint16_t(-1), 8)};
#endif
#if TILE_AVX2
  } else if constexpr (W == 8) {
    return {(typename vec<int32_t, W>::native)__builtin_ia32_cvtps2dq256(a.v)};
#endif
  } else {
    return convert<int32_t>(round_even(a));
  }
}
template <typename T, int W>
TILE_INLINE vec<T, W> floor(vec<T, W> a) {
  const vec<T, W> r = round_even(a);
  return select(r > a, r - T(1), r);
}
template <typename T, int W>
TILE_INLINE vec<T, W> ceil(vec<T, W> a) {
  return -floor(-a);
}
template <typename T, int W>
TILE_INLINE vec<T, W> trunc(vec<T, W> a) {
  return copy_sign(floor(abs(a)), a);
}

// ---- Pairwise reductions over lanes. Maximum and minimum propagate NaN.

#define TILE_REDUCE(NAME, COMBINED)                          \
  template <typename T, int W>                               \
  TILE_INLINE T NAME(vec<T, W> a) {                          \
    if constexpr (W == 1) {                                  \
      return a.v;                                            \
    } else {                                                 \
      const vec<T, W / 2> x = low_half(a), y = high_half(a); \
      return NAME(COMBINED);                                 \
    }                                                        \
  }
TILE_REDUCE(reduce_add, x + y)
TILE_REDUCE(reduce_mul, x* y)
TILE_REDUCE(reduce_max, max(x, y))
TILE_REDUCE(reduce_min, min(x, y))
#undef TILE_REDUCE

template <int B, int W>
TILE_INLINE bool any(mask<B, W> m) {
  if constexpr (W == 1) {
    return m.v.v != 0;
  } else if constexpr (is_wide<int_t<B>, W>) {
    return any(mask<B, W / 2>{m.v.lo | m.v.hi});
  } else {
    return any(mask<B, W / 2>{low_half(m.v) | high_half(m.v)});
  }
}
template <int B, int W>
TILE_INLINE bool all(mask<B, W> m) {
  return !any(~m);
}

// Returns the vector (start, start + 1, ...).
template <typename T, int W>
TILE_INLINE vec<T, W> iota(T start = T(0)) {
  vec<T, W> r;
  for (int i = 0; i < W; ++i) r.set(i, static_cast<T>(start + static_cast<T>(i)));
  return r;
}
// Returns the mask whose first n lanes are set.
template <int B, int W>
TILE_INLINE mask<B, W> first_lanes(int64_t n) {
  const int_t<B> limit = static_cast<int_t<B>>(n < 0 ? 0 : n > W ? W : n);
  return iota<int_t<B>, W>() < splat<W>(limit);
}

}  // namespace heddle::tile
