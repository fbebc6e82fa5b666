// Conversion between element types, bit casts, and the 16-bit floating-point storage formats (round to nearest even).
#pragma once

#include "tile/arch/cpu/resize.h"
#include "tile/arch/cpu/vec_types.h"

namespace heddle::tile {

// Reinterprets the bits of a's lanes as lanes of type To. Both types must have the same size.
template <typename To, typename T, int W>
TILE_INLINE vec<To, W> bit_cast(vec<T, W> a) {
  static_assert(sizeof(To) == sizeof(T));
  if constexpr (is_wide<T, W>) {
    return {bit_cast<To>(a.lo), bit_cast<To>(a.hi)};
  } else {
    using native = typename vec<To, W>::native;
    return {__builtin_bit_cast(native, a.v)};
  }
}

// Converts each lane. A conversion from float to integer truncates and never traps. If the value is out of range for an
// integer of up to 32 bits, it wraps as in a conversion through the next wider integer. If it is out of range for the
// wider integer too, the result is unspecified.
template <typename To, typename T, int W>
TILE_INLINE vec<To, W> convert(vec<T, W> a) {
  if constexpr (is_same<To, T>) {
    return a;
  } else if constexpr (is_float<T> && !is_float<To> && sizeof(To) < 4) {
    return convert<To>(convert<int32_t>(a));
  } else if constexpr (is_float<T> && is_same<To, uint32_t>) {
    return convert<To>(convert<int64_t>(a));
  } else if constexpr (is_float<To> && !is_float<T> && sizeof(T) < 4) {
    return convert<To>(convert<int32_t>(a));
#if TILE_RESIZES_INTS
  } else if constexpr (detail::resizes_ints<To, T, W>) {
    return detail::resize_ints<To>(a);
#if !TILE_AVX512
  } else if constexpr (detail::resizes_two<To, T, W>) {
    return detail::resize_two<To>(a);
#endif
#endif
  } else if constexpr (is_wide<To, W> || is_wide<T, W>) {
    return join(convert<To>(low_half(a)), convert<To>(high_half(a)));
  } else if constexpr (W == 1) {
    return {static_cast<To>(a.v)};
  } else {
    return {__builtin_convertvector(a.v, typename vec<To, W>::native)};
  }
}

template <int To, int B, int W>
TILE_INLINE mask<To, W> convert_mask(mask<B, W> m) {
  return {convert<int_t<To>>(m.v)};
}
// to_mask() sets the lanes that are not zero; NaN is not zero. from_mask() gives 0 or 1 in a numeric type. Tensors of
// booleans have uint8_t elements.
template <typename T, int W>
TILE_INLINE mask<sizeof(T), W> to_mask(vec<T, W> a) {
  return a != zero<T, W>();
}
template <typename T, int B, int W>
TILE_INLINE vec<T, W> from_mask(mask<B, W> m) {
  return convert<T>(convert<int_t<sizeof(T)>>(m.v) & splat<W>(int_t<sizeof(T)>(1)));
}

// Returns a where the mask is set, else b. The mask may come from elements of a different size.
template <int B, typename T, int W>
TILE_INLINE vec<T, W> select(mask<B, W> m, vec<T, W> a, vec<T, W> b) {
  if constexpr (B != sizeof(T)) {
    return select(convert_mask<int(sizeof(T))>(m), a, b);
  } else if constexpr (is_wide<T, W>) {
    return {select(mask<B, W / 2>{m.v.lo}, a.lo, b.lo), select(mask<B, W / 2>{m.v.hi}, a.hi, b.hi)};
  } else {
    return {m.v.v ? a.v : b.v};
  }
}
template <int B, int W>
TILE_INLINE mask<B, W> select(mask<B, W> m, mask<B, W> a, mask<B, W> b) {
  return {select(m, a.v, b.v)};
}

namespace detail {

template <int W>
TILE_INLINE vec<float, W> widen_half(vec<uint16_t, W> h) {
  if constexpr (is_wide<float, W>) {
    return {widen_half(low_half(h)), widen_half(high_half(h))};
#if TILE_AVX512
  } else if constexpr (W == 16) {
    typedef short raw __attribute__((vector_size(32)));
    return {__builtin_ia32_vcvtph2ps512_mask((raw)h.v, vec<float, 16>{}.v, short(-1), 4)};
#endif
#if TILE_AVX2
  } else if constexpr (W == 8) {
    typedef short raw __attribute__((vector_size(16)));
    return {__builtin_ia32_vcvtph2ps256((raw)h.v)};
#endif
  } else {
    // Shift the exponent into place, then multiply by 2^112. This also converts subnormals exactly.
    const vec<uint32_t, W> bits = convert<uint32_t>(h);
    const vec<uint32_t, W> sign = (bits & 0x8000u) << 16u;
    const vec<uint32_t, W> magnitude = (bits & 0x7fffu) << 13u;
    const vec<float, W> scaled = bit_cast<float>(magnitude) * 0x1p112f;
    const auto special = magnitude >= (0x7c00u << 13);
    const vec<uint32_t, W> r = select(special, magnitude | 0x7f800000u, bit_cast<uint32_t>(scaled));
    return bit_cast<float>(r | sign);
  }
}

template <int W>
TILE_INLINE vec<uint16_t, W> narrow_half(vec<float, W> a) {
  if constexpr (is_wide<float, W>) {
    return join(narrow_half(a.lo), narrow_half(a.hi));
#if TILE_AVX512
  } else if constexpr (W == 16) {
    typedef short raw __attribute__((vector_size(32)));
    return {(typename vec<uint16_t, 16>::native)__builtin_ia32_vcvtps2ph512_mask(a.v, 0, raw{}, short(-1))};
#endif
#if TILE_AVX2
  } else if constexpr (W == 8) {
    return {(typename vec<uint16_t, 8>::native)__builtin_ia32_vcvtps2ph256(a.v, 0)};
#endif
  } else {
    const vec<uint32_t, W> bits = bit_cast<uint32_t>(a);
    const vec<uint32_t, W> sign = bits & 0x80000000u;
    const vec<uint32_t, W> magnitude = bits ^ sign;
    // Normal results: round by adding half an ulp, ties to even. Subnormal results: adding 0.5 rounds at 2^-24.
    const vec<uint32_t, W> odd = (magnitude >> 13u) & 1u;
    const vec<uint32_t, W> normal = (magnitude - (112u << 23) + 0xfffu + odd) >> 13u;
    const vec<uint32_t, W> subnormal = bit_cast<uint32_t>(bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
    vec<uint32_t, W> r = select(magnitude < (113u << 23), subnormal, normal);
    r = select(magnitude >= 0x47800000u, splat<W>(0x7c00u), r);
    r = select(magnitude > 0x7f800000u, ((magnitude >> 13u) & 0x1ffu) | 0x7e00u, r);
    return convert<uint16_t>(r | (sign >> 16u));
  }
}

template <int W>
TILE_INLINE vec<float, W> widen_bfloat(vec<uint16_t, W> b) {
  return bit_cast<float>(convert<uint32_t>(b) << 16u);
}

template <int W>
TILE_INLINE vec<uint16_t, W> narrow_bfloat(vec<float, W> a) {
  const vec<uint32_t, W> bits = bit_cast<uint32_t>(a);
  const vec<uint32_t, W> rounded = (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
  return convert<uint16_t>(select(a != a, (bits >> 16u) | 0x40u, rounded));
}

}  // namespace detail

// Conversions of one value, for scalar code.
TILE_INLINE float to_float(half h) {
  return detail::widen_half(vec<uint16_t, 1>{h.bits}).v;
}
TILE_INLINE float to_float(bfloat b) {
  return detail::widen_bfloat(vec<uint16_t, 1>{b.bits}).v;
}
TILE_INLINE float to_float(float f) {
  return f;
}
TILE_INLINE half to_half(float f) {
  return {detail::narrow_half(vec<float, 1>{f}).v};
}
TILE_INLINE bfloat to_bfloat(float f) {
  return {detail::narrow_bfloat(vec<float, 1>{f}).v};
}

namespace detail {

// The type of the bits of T in memory.
template <typename T>
struct bits_type {
  using type = T;
};
template <>
struct bits_type<half> {
  using type = uint16_t;
};
template <>
struct bits_type<bfloat> {
  using type = uint16_t;
};
template <typename T>
using bits_t = typename bits_type<T>::type;

// Convert between elements of type T in memory and the type in which they are computed.
template <typename T, int W>
TILE_INLINE vec<compute_t<T>, W> widen(vec<bits_t<T>, W> a) {
  if constexpr (is_same<T, half>) {
    return widen_half(a);
  } else if constexpr (is_same<T, bfloat>) {
    return widen_bfloat(a);
  } else {
    return a;
  }
}
template <typename T, int W>
TILE_INLINE vec<bits_t<T>, W> narrow(vec<compute_t<T>, W> a) {
  if constexpr (is_same<T, half>) {
    return narrow_half(a);
  } else if constexpr (is_same<T, bfloat>) {
    return narrow_bfloat(a);
  } else {
    return a;
  }
}

}  // namespace detail

// Rounds each lane to the precision of a 16-bit storage type. With this between fused operations, their result is the
// same as if each intermediate value were stored in that type.
template <typename Storage, int W>
TILE_INLINE vec<float, W> round_to(vec<float, W> a) {
  if constexpr (is_same<Storage, detail::bits_t<Storage>>) {
    return a;
  } else {
    return detail::widen<Storage>(detail::narrow<Storage>(a));
  }
}

}  // namespace heddle::tile
