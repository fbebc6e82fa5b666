// Narrow element types: float8 and float4 (one byte per element, computed in float), and integers of fewer than eight
// bits (one byte per element, with values in range). They are rare, so the code is scalar, one lane at a time.
#pragma once

#include "tile/op/arith.h"
#if !defined(__CUDACC__) && !defined(TILE_CUDA)
#include "tile/op/lanes.h"
#endif

namespace heddle::tile {

template <int Exponent, int Mantissa, int Bias, bool Infinity, int Max, int Nan, bool Fnuz>
struct minifloat {
  uint8_t bits;

  static constexpr int sign_bit = 1 << (Exponent + Mantissa);
  static constexpr bool has_infinity = Infinity;

  TILE_HD static float decode(uint8_t raw) {
    if (Fnuz && raw == Nan) return __builtin_nanf("");
    const int code = raw & (sign_bit - 1);
    const float sign = raw & sign_bit ? -1.f : 1.f;
    if (Infinity && code == Max + 1) return sign * __builtin_inff();
    if (code > Max) return __builtin_nanf("");
    const int exponent = code >> Mantissa, mantissa = code & ((1 << Mantissa) - 1);
    const int unit = (exponent == 0 ? 1 : exponent) - Bias - Mantissa;
    return sign * __builtin_ldexpf(float(exponent == 0 ? mantissa : (1 << Mantissa) + mantissa), unit);
  }

  // Rounds to nearest even. Values that are too large become the largest number if `saturate` is set, else infinity or
  // NaN.
  TILE_HD static uint8_t encode(float value, bool saturate) {
    const int sign = __builtin_signbit(value) ? sign_bit : 0;
    if (value != value) return uint8_t(Fnuz ? Nan : sign | Nan);
    const float magnitude = __builtin_fabsf(value);
    const int overflow = saturate || Nan == 0 ? Max : Infinity ? Max + 1 : Nan;
    int code = overflow;
    if (magnitude < __builtin_inff()) {
      int exponent = 0;
      __builtin_frexpf(magnitude, &exponent);
      const int normal = exponent - 1 < 1 - Bias ? 1 - Bias : exponent - 1;
      // The magnitude in units of the last place. A carry increments the exponent automatically.
      const int steps = int(__builtin_nearbyintf(__builtin_ldexpf(magnitude, Mantissa - normal)));
      const long rounded = steps < (1 << Mantissa) ? steps : steps + (long(normal + Bias - 1) << Mantissa);
      if (rounded <= Max) code = int(rounded);
    }
    return uint8_t(Fnuz && (code == 0 || code == Nan) ? code : sign | code);
  }
};

using f8e4m3 = minifloat<4, 3, 7, false, 0x7e, 0x7f, false>;
using f8e4m3fnuz = minifloat<4, 3, 8, false, 0x7f, 0x80, true>;
using f8e5m2 = minifloat<5, 2, 15, true, 0x7b, 0x7f, false>;
using f8e5m2fnuz = minifloat<5, 2, 16, false, 0x7f, 0x80, true>;
using f4e2m1 = minifloat<2, 1, 1, false, 0x7, 0, false>;

// The powers of two from 2^-127 to 2^127; 0xff is NaN.
struct f8e8m0 {
  uint8_t bits;
  static constexpr bool has_infinity = false;
  TILE_HD static float decode(uint8_t raw) {
    return raw == 0xff ? __builtin_nanf("") : __builtin_ldexpf(1.f, int(raw) - 127);
  }
  TILE_HD static uint8_t encode(float value, bool) {
    if (!(value > 0)) return value == 0 ? 0 : 0xff;
    if (value == __builtin_inff()) return 0xfe;
    int exponent = 0;
    const float fraction = __builtin_frexpf(value, &exponent);  // in [1/2, 1)
    constexpr float kRootOfHalf = 0x1.6a09e6p-1f;               // rounded down: no float is the root itself
    const int code = exponent + 126 + (fraction > kRootOfHalf);
    return uint8_t(code < 0 ? 0 : code > 254 ? 254 : code);
  }
};

template <typename T>
concept narrow_float = requires(uint8_t bits) {
  T::decode(bits);
};

template <narrow_float T>
struct compute_type<T> {
  using type = float;
};

#if !defined(__CUDACC__) && !defined(TILE_CUDA)  // on a GPU, the loads and stores of arch/cuda convert
template <int W, narrow_float T>
TILE_INLINE vec<float, W> load_n(const T* p, int64_t n) {
  return lanes_of<W, float>(n, [&](int64_t i) { return T::decode(p[i].bits); });
}
template <int W, narrow_float T>
TILE_INLINE vec<float, W> load(const T* p) {
  return load_n<W>(p, W);
}
template <int W, narrow_float T>
TILE_INLINE vec<float, W> load_strided_n(const T* p, int64_t stride, int64_t n) {
  return lanes_of<W, float>(n, [&](int64_t i) { return T::decode(p[i * stride].bits); });
}
template <int W, narrow_float T>
TILE_INLINE vec<float, W> load_strided(const T* p, int64_t stride) {
  return load_strided_n<W>(p, stride, W);
}
// Encodes a value for a store. The value was already rounded by its cast; infinities occur only if that cast did not
// saturate.
template <narrow_float T>
TILE_INLINE uint8_t encode_stored(float v) {
  return T::encode(v, !(T::has_infinity && __builtin_isinf(v)));
}
template <narrow_float T, int W>
TILE_INLINE void store_n(T* p, vec<float, W> v, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i].bits = encode_stored<T>(v[int(i)]);
}
template <narrow_float T, int W>
TILE_INLINE void store(T* p, vec<float, W> v) {
  store_n(p, v, W);
}
template <narrow_float T, int W>
TILE_INLINE void store_strided_n(T* p, int64_t stride, vec<float, W> v, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i * stride].bits = encode_stored<T>(v[int(i)]);
}
template <narrow_float T, int W>
TILE_INLINE void store_strided(T* p, int64_t stride, vec<float, W> v) {
  store_strided_n(p, stride, v, W);
}
#endif

// Returns the values that floats have after being stored as S.
template <typename S, bool Saturate, int W>
TILE_INLINE vec<float, W> round_storage(vec<float, W> v) {
  if constexpr (narrow_float<S>) {
    return map_lanes(v, [](float x) { return S::decode(S::encode(x, Saturate)); });
  } else {
    return round_to<S>(v);
  }
}

// Converts to an integer of Bits bits in the byte type To: floats saturate, integers wrap.
template <typename To, int Bits, typename T, int W>
TILE_INLINE vec<To, W> cast_bits(vec<T, W> v) {
  if constexpr (is_float<T>) {
    constexpr To high = To((1 << (Bits - is_signed<To>)) - 1), low = is_signed<To> ? To(-high - 1) : To(0);
    return min(max(cast<To>(v), low), high);
  } else {
    return map_lanes(convert<To>(v), [](To x) {
      const int raised = int(x) << (32 - Bits);
      return To(is_signed<To> ? raised >> (32 - Bits) : int(unsigned(raised) >> (32 - Bits)));
    });
  }
}

}  // namespace heddle::tile
