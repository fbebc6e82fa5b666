// Arithmetic on single numbers of every element type, with the semantics of tile operations. Integers wrap, and
// division by zero gives 0. Float8 and 16-bit floats are computed in float and rounded. Functions that CUDA also
// provides with the same meaning (exp, sin, floor, ...) are not defined here; for float and double, call them by their
// CUDA names.
#pragma once

#include "tile/arch/vec.h"
#include "tile/op/arith.h"
#include "tile/op/combine.h"
#include "tile/op/cuda/fast.h"
#include "tile/op/narrow.h"

namespace heddle::tile::block {

// e4m3 with exponent bias 15, no infinities and a single NaN.
using f8e4m3b15 = minifloat<4, 3, 15, false, 0x7e, 0x7f, false>;

template <typename T>
inline constexpr bool is_pointer = false;
template <typename T>
inline constexpr bool is_pointer<T*> = true;
template <typename T>
inline constexpr bool is_16bit_float = is_same<T, half> || is_same<T, bfloat>;
// True for types whose arithmetic is done in float.
template <typename T>
inline constexpr bool is_narrow = is_16bit_float<T> || narrow_float<T>;
template <typename T>
inline constexpr bool is_any_float = is_float<T> || is_narrow<T>;

// Converts an element to the type in which its arithmetic is done.
template <typename T>
TILE_INLINE auto widen(T x) {
  if constexpr (is_narrow<T>) {
    return tile::detail::decode(x);
  } else {
    return x;
  }
}

// Rounds to nearest even. Numbers that are too large for an 8-bit type become its largest number.
template <typename To, typename T>
TILE_INLINE To narrow(T x) {
  if constexpr (is_16bit_float<To>) {
    return cuda::from_float<To>(to_odd(vec<T, 1>{x})[0]);
  } else if constexpr (narrow_float<To>) {
    return {To::encode(to_odd(vec<T, 1>{x})[0], true)};
  } else {
    return static_cast<To>(x);
  }
}

// Converts between any two number types. Conversion to a float rounds to nearest even. Conversion of a float to an
// integer rounds towards zero and saturates; NaN becomes 0. Conversion to bool gives true for nonzero numbers.
template <typename To, typename T>
TILE_INLINE To cast(T x) {
  if constexpr (is_same<To, T>) {
    return x;
  } else if constexpr (is_narrow<T>) {
    return cast<To>(widen(x));
  } else if constexpr (is_same<To, bool>) {
    return x != T(0);
  } else if constexpr (is_narrow<To>) {
    return narrow<To>(x);
  } else if constexpr (is_same<T, bool>) {
    return static_cast<To>(x ? 1 : 0);
  } else {
    return tile::cast<To>(vec<T, 1>{x})[0];
  }
}
// Converts as cast() does, but rounds to 16-bit floats and float8 types towards zero.
template <typename To, typename T>
TILE_INLINE To cast_rtz(T x) {
  To r = cast<To>(x);
  if constexpr (is_narrow<To>) {
    if (__builtin_fabs(double(widen(r))) > __builtin_fabs(double(widen(x)))) r.bits -= 1;
  }
  return r;
}
template <typename To, typename T>
TILE_INLINE To bitcast(T x) {
  static_assert(sizeof(To) == sizeof(T));
  return __builtin_bit_cast(To, x);
}

// Applies f in the type in which arithmetic on T is done.
template <typename T, typename F>
TILE_INLINE T in_wider(T a, F f) {
  if constexpr (is_narrow<T>) {
    return narrow<T>(f(widen(a)));
  } else {
    return f(a);
  }
}
template <typename T, typename F>
TILE_INLINE T in_wider(T a, T b, F f) {
  if constexpr (is_narrow<T>) {
    return narrow<T>(f(widen(a), widen(b)));
  } else {
    return f(a, b);
  }
}

template <typename T>
TILE_INLINE T add(T a, T b) {
  if constexpr (is_same<T, bool>) {
    return a != b;
  } else {
    return in_wider(a, b, [](auto x, auto y) { return tile::detail::add_of(x, y); });
  }
}
template <typename T>
TILE_INLINE T sub(T a, T b) {
  if constexpr (is_same<T, bool>) {
    return a != b;
  } else {
    return in_wider(a, b, [](auto x, auto y) { return tile::detail::sub_of(x, y); });
  }
}
template <typename T>
TILE_INLINE T mul(T a, T b) {
  if constexpr (is_same<T, bool>) {
    return a && b;
  } else {
    return in_wider(a, b, [](auto x, auto y) { return tile::detail::mul_of(x, y); });
  }
}
// Division, rounded as in IEEE 754.
template <typename T>
TILE_INLINE T div(T a, T b) {
  return in_wider(a, b, [](auto x, auto y) { return x / y; });
}
// Division. For types computed in float, the error is at most 2 units in the last place of a float.
template <typename T>
TILE_INLINE T div_fast(T a, T b) {
  return in_wider(a, b, [](auto x, auto y) {
    if constexpr (is_same<decltype(x), float>) {
      return cuda::divide_full(x, y);
    } else {
      return x / y;
    }
  });
}
template <typename T>
TILE_INLINE T idiv(T a, T b) {
  return tile::detail::div_of(a, b);
}
template <typename T>
TILE_INLINE T rem(T a, T b) {
  return in_wider(a, b, [](auto x, auto y) {
    using V = decltype(x);
    return tile::rem(vec<V, 1>{x}, vec<V, 1>{y})[0];
  });
}
template <typename T>
TILE_INLINE T fma(T a, T b, T c) {
  if constexpr (is_narrow<T>) {
    return narrow<T>(__builtin_fmaf(widen(a), widen(b), widen(c)));
  } else if constexpr (is_same<T, float>) {
    return __builtin_fmaf(a, b, c);
  } else if constexpr (is_same<T, double>) {
    return __builtin_fma(a, b, c);
  } else {
    return add(mul(a, b), c);
  }
}
template <typename T>
TILE_INLINE T neg(T a) {
  if constexpr (is_same<T, bool>) {
    return a;
  } else {
    return in_wider(a, [](auto x) { return tile::detail::neg_of(x); });
  }
}
template <typename T>
TILE_INLINE T abs(T a) {
  if constexpr (is_same<T, bool>) {
    return a;
  } else {
    return in_wider(a, [](auto x) {
      using V = decltype(x);
      return tile::abs(vec<V, 1>{x})[0];
    });
  }
}

// Minimum and maximum. For a number and NaN, they return the number; the `_or_nan` forms return NaN.
#define TILE_EXTREME(NAME, SECOND)                                                      \
  template <typename T>                                                                 \
  TILE_INLINE T NAME(T a, T b) {                                                        \
    return in_wider(a, b, [](auto x, auto y) {                                          \
      if constexpr (is_same<decltype(x), float>) {                                      \
        return ::f##NAME##f(x, y);                                                      \
      } else if constexpr (is_same<decltype(x), double>) {                              \
        return ::f##NAME(x, y);                                                         \
      } else {                                                                          \
        return SECOND ? y : x;                                                          \
      }                                                                                 \
    });                                                                                 \
  }                                                                                     \
  template <typename T>                                                                 \
  TILE_INLINE T NAME##_or_nan(T a, T b) {                                               \
    return in_wider(a, b, [](auto x, auto y) { return tile::NAME##_of::apply(x, y); }); \
  }
TILE_EXTREME(min, y < x)
TILE_EXTREME(max, x < y)
#undef TILE_EXTREME
// clamp() computes min(max(x, low), high). clamp_or_nan() returns NaN if an argument is NaN.
template <typename T>
TILE_INLINE T clamp(T x, T low, T high) {
  return min(max(x, low), high);
}
template <typename T>
TILE_INLINE T clamp_or_nan(T x, T low, T high) {
  return min_or_nan(max_or_nan(x, low), high);
}

// Shifts. A shift by a negative amount, or by the type's width or more, gives 0.
template <typename T>
TILE_INLINE T shl(T a, T by) {
  return tile::shl(vec<T, 1>{a}, vec<T, 1>{by})[0];
}
template <typename T>
TILE_INLINE T shr(T a, T by) {
  return tile::shr(vec<T, 1>{a}, vec<T, 1>{by})[0];
}
template <typename T>
TILE_INLINE T invert(T a) {
  if constexpr (is_same<T, bool>) {
    return !a;
  } else {
    return static_cast<T>(~a);
  }
}
// The upper half of the double-width product.
template <typename T>
TILE_INLINE T mulhi(T a, T b) {
  if constexpr (sizeof(T) == 8) {
    if constexpr (is_signed<T>) {
      return static_cast<T>(__mul64hi(a, b));
    } else {
      return static_cast<T>(__umul64hi(a, b));
    }
  } else if constexpr (is_signed<T>) {
    return static_cast<T>(int64_t{a} * b >> (8 * sizeof(T)));
  } else {
    return static_cast<T>(uint64_t{a} * b >> (8 * sizeof(T)));
  }
}

// Bit operations on integers.
template <typename T>
TILE_INLINE T clz(T x) {
  if constexpr (sizeof(T) == 8) {
    return T(__clzll(static_cast<long long>(x)));
  } else {
    return T(__clz(static_cast<int>(uint_t<sizeof(T)>(x))) - (32 - 8 * int(sizeof(T))));
  }
}
template <typename T>
TILE_INLINE T popc(T x) {
  return T(__popcll(uint_t<sizeof(T)>(x)));
}
template <typename T>
TILE_INLINE T ffs(T x) {
  return T(__ffsll(static_cast<long long>(uint_t<sizeof(T)>(x))));
}
template <typename T>
TILE_INLINE T brev(T x) {
  if constexpr (sizeof(T) == 8) {
    const auto bits = static_cast<uint64_t>(x);
    return T(uint64_t(__brev(uint32_t(bits))) << 32 | __brev(uint32_t(bits >> 32)));
  } else {
    return T(__brev(uint32_t(uint_t<sizeof(T)>(x))) >> (32 - 8 * sizeof(T)));
  }
}

// Computes e^x. The float version has the error of fast::exp().
TILE_INLINE float exp_fast(float x) {
  return fast::exp(x);
}
TILE_INLINE double exp_fast(double x) {
  return ::exp(x);
}

// Functors for reductions. Both operands have the same type.
#define TILE_FUNCTOR(NAME, FUNCTION)           \
  struct NAME {                                \
    static constexpr bool commutative = true;  \
    template <typename T>                      \
    TILE_INLINE T operator()(T a, T b) const { \
      return FUNCTION(a, b);                   \
    }                                          \
  };
TILE_FUNCTOR(sum_of, add)
TILE_FUNCTOR(product_of, mul)
TILE_FUNCTOR(max_of, block::max)
TILE_FUNCTOR(min_of, block::min)
#undef TILE_FUNCTOR

}  // namespace heddle::tile::block
