// vec<T, W>: a vector of W lanes of T, on GCC/Clang vector extensions. W is a power of two. With W = 1 it is a scalar.
// A vector that is wider than a native register is a pair of halves, so the same code works for every width and ISA.
// See tile/README.md.
#pragma once

#include "tile/arch/cpu/builtins.h"
#include "tile/arch/cpu/isa.h"
#include "tile/core/static_for.h"
#include "tile/core/types.h"

namespace heddle::tile {

template <typename T, int W>
inline constexpr bool is_wide = W > 1 && W* int(sizeof(T)) > kVectorBytes;

namespace detail {

template <typename T, int W, bool Wide>
struct storage {
  typedef T type __attribute__((vector_size(W * sizeof(T))));
};
template <typename T>
struct storage<T, 1, false> {
  typedef T type;
};

}  // namespace detail

template <typename T, int W, bool Wide = is_wide<T, W>>
struct vec {
  using element = T;
  using native = typename detail::storage<T, W, false>::type;
  static constexpr int width = W;
  native v;

  TILE_INLINE T operator[](int lane) const {
    if constexpr (W == 1) {
      return v;
    } else {
      return v[lane];
    }
  }
  TILE_INLINE void set(int lane, T value) {
    if constexpr (W == 1) {
      v = value;
    } else {
      v[lane] = value;
    }
  }
};

template <typename T, int W>
struct vec<T, W, true> {
  using element = T;
  static constexpr int width = W;
  vec<T, W / 2> lo, hi;

  TILE_INLINE T operator[](int lane) const { return lane < W / 2 ? lo[lane] : hi[lane - W / 2]; }
  TILE_INLINE void set(int lane, T value) {
    if (lane < W / 2) {
      lo.set(lane, value);
    } else {
      hi.set(lane - W / 2, value);
    }
  }
};

// A mask: each lane has Bytes bytes, whose bits are all ones or all zeros. It is the result of comparing elements of
// Bytes bytes.
template <int Bytes, int W>
struct mask {
  vec<int_t<Bytes>, W> v;

  TILE_INLINE bool operator[](int lane) const { return v[lane] != 0; }
};

template <typename V>
inline constexpr bool is_vec = false;
template <typename T, int W>
inline constexpr bool is_vec<vec<T, W>> = true;

template <int W, typename T>
TILE_INLINE vec<T, W> splat(T value) {
  if constexpr (is_wide<T, W>) {
    const vec<T, W / 2> h = splat<W / 2>(value);
    return {h, h};
  } else if constexpr (W == 1) {
    return {value};
  } else {
    return {value - typename vec<T, W>::native{}};
  }
}
template <typename T, int W>
TILE_INLINE vec<T, W> zero() {
  return vec<T, W>{};
}

template <typename T, int W>
TILE_INLINE vec<T, W / 2> low_half(vec<T, W> a);
template <typename T, int W>
TILE_INLINE vec<T, W / 2> high_half(vec<T, W> a);
template <typename T, int W>
TILE_INLINE vec<T, W * 2> join(vec<T, W> lo, vec<T, W> hi);

namespace detail {

template <int Offset, typename T, int W, int... I>
TILE_INLINE vec<T, W / 2> part(vec<T, W> a, indices<I...>) {
  if constexpr (W == 2) {
    return {a.v[Offset]};
  } else {
    return {__builtin_shufflevector(a.v, a.v, (Offset + I)...)};
  }
}
template <typename T, int W, int... I>
TILE_INLINE vec<T, W * 2> concat(vec<T, W> a, vec<T, W> b, indices<I...>) {
  if constexpr (W == 1) {
    return {typename vec<T, 2>::native{a.v, b.v}};
  } else {
    return {__builtin_shufflevector(a.v, b.v, I...)};
  }
}

}  // namespace detail

template <typename T, int W>
TILE_INLINE vec<T, W / 2> low_half(vec<T, W> a) {
  if constexpr (is_wide<T, W>) {
    return a.lo;
  } else {
    return detail::part<0>(a, detail::make_indices<W / 2>{});
  }
}
template <typename T, int W>
TILE_INLINE vec<T, W / 2> high_half(vec<T, W> a) {
  if constexpr (is_wide<T, W>) {
    return a.hi;
  } else {
    return detail::part<W / 2>(a, detail::make_indices<W / 2>{});
  }
}
template <typename T, int W>
TILE_INLINE vec<T, W * 2> join(vec<T, W> lo, vec<T, W> hi) {
  if constexpr (is_wide<T, W * 2>) {
    return {lo, hi};
  } else {
    return detail::concat(lo, hi, detail::make_indices<W * 2>{});
  }
}

namespace detail {

template <int First, typename T, int W, int... I>
TILE_INLINE vec<T, W> every_other(vec<T, W> a, vec<T, W> b, indices<I...>) {
  return {__builtin_shufflevector(a.v, b.v, (2 * I + First)...)};
}

}  // namespace detail

// even_lanes(): lanes 0, 2, 4, ... of a, then those of b. odd_lanes(): lanes 1, 3, 5, ... of a, then those of b.
template <typename T, int W>
TILE_INLINE vec<T, W> even_lanes(vec<T, W> a, vec<T, W> b) {
  return detail::every_other<0>(a, b, detail::make_indices<W>{});
}
template <typename T, int W>
TILE_INLINE vec<T, W> odd_lanes(vec<T, W> a, vec<T, W> b) {
  return detail::every_other<1>(a, b, detail::make_indices<W>{});
}

// ---- Arithmetic. A scalar operand is broadcast to all lanes.

#define TILE_BINARY(OP)                                             \
  template <typename T, int W>                                      \
  TILE_INLINE vec<T, W> operator OP(vec<T, W> a, vec<T, W> b) {     \
    if constexpr (is_wide<T, W>) {                                  \
      return {a.lo OP b.lo, a.hi OP b.hi};                          \
    } else {                                                        \
      return {static_cast<typename vec<T, W>::native>(a.v OP b.v)}; \
    }                                                               \
  }                                                                 \
  template <typename T, int W>                                      \
  TILE_INLINE vec<T, W> operator OP(vec<T, W> a, T b) {             \
    return a OP splat<W>(b);                                        \
  }                                                                 \
  template <typename T, int W>                                      \
  TILE_INLINE vec<T, W> operator OP(T a, vec<T, W> b) {             \
    return splat<W>(a) OP b;                                        \
  }
TILE_BINARY(+)
TILE_BINARY(-)
TILE_BINARY(*)
TILE_BINARY(&)
TILE_BINARY(|)
TILE_BINARY(^)
TILE_BINARY(<<)
TILE_BINARY(>>)
#undef TILE_BINARY

template <typename T, int W>
TILE_INLINE vec<T, W>& operator+=(vec<T, W>& a, vec<T, W> b) {
  return a = a + b;
}
template <typename T, int W>
TILE_INLINE vec<T, W>& operator*=(vec<T, W>& a, vec<T, W> b) {
  return a = a * b;
}

#define TILE_COMPARE(OP)                                                  \
  template <typename T, int W>                                            \
  TILE_INLINE mask<sizeof(T), W> operator OP(vec<T, W> a, vec<T, W> b) {  \
    if constexpr (is_wide<T, W>) {                                        \
      return {{(a.lo OP b.lo).v, (a.hi OP b.hi).v}};                      \
    } else if constexpr (W == 1) {                                        \
      return {{static_cast<int_t<sizeof(T)>>(-(a.v OP b.v))}};            \
    } else {                                                              \
      return {{(typename vec<int_t<sizeof(T)>, W>::native)(a.v OP b.v)}}; \
    }                                                                     \
  }                                                                       \
  template <typename T, int W>                                            \
  TILE_INLINE mask<sizeof(T), W> operator OP(vec<T, W> a, T b) {          \
    return a OP splat<W>(b);                                              \
  }
TILE_COMPARE(==)
TILE_COMPARE(!=)
TILE_COMPARE(<)
TILE_COMPARE(<=)
TILE_COMPARE(>)
TILE_COMPARE(>=)
#undef TILE_COMPARE

template <typename T, int W>
TILE_INLINE vec<T, W> operator-(vec<T, W> a) {
  if constexpr (is_wide<T, W>) {
    return {-a.lo, -a.hi};
  } else {
    return {static_cast<typename vec<T, W>::native>(-a.v)};
  }
}
template <typename T, int W>
TILE_INLINE vec<T, W> operator~(vec<T, W> a) {
  if constexpr (is_wide<T, W>) {
    return {~a.lo, ~a.hi};
  } else {
    return {static_cast<typename vec<T, W>::native>(~a.v)};
  }
}
template <int B, int W>
TILE_INLINE mask<B, W> operator&(mask<B, W> a, mask<B, W> b) {
  return {a.v & b.v};
}
template <int B, int W>
TILE_INLINE mask<B, W> operator|(mask<B, W> a, mask<B, W> b) {
  return {a.v | b.v};
}
template <int B, int W>
TILE_INLINE mask<B, W> operator^(mask<B, W> a, mask<B, W> b) {
  return {a.v ^ b.v};
}
template <int B, int W>
TILE_INLINE mask<B, W> operator~(mask<B, W> a) {
  return {~a.v};
}

// Makes a vector of the elements of `lanes`. Do not set the lanes of a vector one by one instead: if truth values are
// set in two lanes, GCC 12 treats them as masks, so that 1 becomes -1.
template <typename T, int W>
TILE_INLINE vec<T, W> of_lanes(const T (&lanes)[W]) {
  vec<T, W> r;
  static_assert(sizeof r == sizeof lanes);
  __builtin_memcpy(&r, lanes, sizeof r);
  return r;
}

// Applies f to every lane, for operations that have no vector form.
template <typename T, int W, typename F>
TILE_INLINE vec<T, W> map_lanes(vec<T, W> a, F f) {
  T r[W];
  for (int i = 0; i < W; ++i) r[i] = f(a[i]);
  return of_lanes(r);
}
template <typename T, int W, typename F>
TILE_INLINE vec<T, W> map_lanes(vec<T, W> a, vec<T, W> b, F f) {
  T r[W];
  for (int i = 0; i < W; ++i) r[i] = f(a[i], b[i]);
  return of_lanes(r);
}

template <typename To, typename T, int W, typename F>
TILE_INLINE vec<To, W> map_lanes_to(vec<T, W> a, F f) {
  To r[W];
  for (int i = 0; i < W; ++i) r[i] = f(a[i]);
  return of_lanes(r);
}

// Division. Integer division truncates toward zero. An integer divided by 0 is 0, and the most negative integer divided
// by -1 wraps, since a trap in a kernel would kill the process.
template <typename T, int W>
TILE_INLINE vec<T, W> operator/(vec<T, W> a, vec<T, W> b) {
  if constexpr (!is_float<T>) {
    return map_lanes(a, b, [](T x, T y) -> T {
      if (y == 0) return 0;
      if constexpr (is_signed<T>) {
        if (y == T(-1)) return static_cast<T>(uint_t<sizeof(T)>(0) - static_cast<uint_t<sizeof(T)>>(x));
      }
      return static_cast<T>(x / y);
    });
  } else if constexpr (is_wide<T, W>) {
    return {a.lo / b.lo, a.hi / b.hi};
  } else {
    return {a.v / b.v};
  }
}
template <typename T, int W>
TILE_INLINE vec<T, W> operator/(vec<T, W> a, T b) {
  return a / splat<W>(b);
}
template <typename T, int W>
TILE_INLINE vec<T, W> operator/(T a, vec<T, W> b) {
  return splat<W>(a) / b;
}

// The remainder of integers, with the sign of the dividend as in C. x % 0 is 0.
template <typename T, int W>
TILE_INLINE vec<T, W> operator%(vec<T, W> a, vec<T, W> b) {
  return map_lanes(a, b, [](T x, T y) -> T {
    if (y == 0 || y == T(-1)) return y == 0 || is_signed<T> ? T(0) : static_cast<T>(x % y);
    return static_cast<T>(x % y);
  });
}

}  // namespace heddle::tile
