// Element types, and the few type traits that the library needs. Including the standard headers would take longer than
// compiling a kernel.
#pragma once

#include "tile/core/config.h"

namespace heddle::tile {

// Storage types. Arithmetic on them is done in float.
struct half {
  uint16_t bits;
};
struct bfloat {
  uint16_t bits;
};

template <typename A, typename B>
inline constexpr bool is_same = false;
template <typename A>
inline constexpr bool is_same<A, A> = true;

template <typename T>
inline constexpr bool is_float = is_same<T, float> || is_same<T, double>;
// True for integers, including bool and char. False for the storage types.
template <typename T>
inline constexpr bool is_integer = !is_float<T> && requires(T x) {
  1 << x;
};
// True for the storage types.
template <typename T>
inline constexpr bool is_class = !is_float<T> && !is_integer<T>;
template <typename T>
inline constexpr bool is_signed = is_float<T> || T(-1) < T(0);

// The type in which an element is computed: float for the 16-bit floats, otherwise T itself.
template <typename T>
struct compute_type {
  using type = T;
};
template <>
struct compute_type<half> {
  using type = float;
};
template <>
struct compute_type<bfloat> {
  using type = float;
};
template <typename T>
using compute_t = typename compute_type<T>::type;

// The integer type with `Bytes` bytes.
template <int Bytes, bool Signed>
struct int_of_size;
template <>
struct int_of_size<1, true> {
  using type = int8_t;
};
template <>
struct int_of_size<2, true> {
  using type = int16_t;
};
template <>
struct int_of_size<4, true> {
  using type = int32_t;
};
template <>
struct int_of_size<8, true> {
  using type = int64_t;
};
template <>
struct int_of_size<1, false> {
  using type = uint8_t;
};
template <>
struct int_of_size<2, false> {
  using type = uint16_t;
};
template <>
struct int_of_size<4, false> {
  using type = uint32_t;
};
template <>
struct int_of_size<8, false> {
  using type = uint64_t;
};
template <int Bytes>
using int_t = typename int_of_size<Bytes, true>::type;
template <int Bytes>
using uint_t = typename int_of_size<Bytes, false>::type;

// The initial values of a maximum and of a minimum: infinities, or the limits of an integer type.
template <typename T>
TILE_HD constexpr T lowest() {
  if constexpr (is_float<T>) {
    return -T(kInfinity);
  } else if constexpr (is_signed<T>) {
    return T(uint_t<sizeof(T)>(1) << (8 * sizeof(T) - 1));
  } else {
    return T(0);
  }
}
template <typename T>
TILE_HD constexpr T highest() {
  if constexpr (is_float<T>) {
    return T(kInfinity);
  } else {
    return T(~lowest<T>());
  }
}

}  // namespace heddle::tile
