// vec<T, W> holds W neighbouring elements in registers of one GPU thread. It has the interface of arch/cpu/vec.h, so
// that the same generated source text compiles for both targets. It is plain C++: loops over the lanes, which the
// compiler unrolls.
#pragma once

#include "tile/arch/cuda/builtins.h"
#include "tile/arch/sm80/approx.h"
#include "tile/arch/sm80/convert.h"
#include "tile/arch/sm80/integer.h"
#include "tile/core/static_for.h"
#include "tile/core/types.h"

namespace heddle::tile {

template <typename T, int W>
struct vec {
  using element = T;
  static constexpr int width = W;
  T e[W];
  TILE_INLINE T operator[](int lane) const { return e[lane]; }
  TILE_INLINE void set(int lane, T value) { e[lane] = value; }
};
template <typename T>
struct vec<T, 1> {
  using element = T;
  static constexpr int width = 1;
  T v;
  TILE_INLINE T operator[](int) const { return v; }
  TILE_INLINE void set(int, T value) { v = value; }
};

// One bool per lane. `Bytes` is the size of the compared elements; it has no effect here and exists only because the
// masks of CPUs have this parameter.
template <int Bytes, int W>
struct mask {
  bool e[W];
  TILE_INLINE bool operator[](int lane) const { return e[lane]; }
};

template <int W, typename F>
TILE_INLINE void each_lane(F f) {
#pragma unroll
  for (int i = 0; i < W; ++i) f(i);
}

template <int W, typename T>
TILE_INLINE vec<T, W> splat(T value) {
  vec<T, W> r;
  each_lane<W>([&](int i) { r.set(i, value); });
  return r;
}
template <typename T, int W>
TILE_INLINE vec<T, W> zero() {
  return splat<W>(T(0));
}
template <typename T, int W, typename F>
TILE_INLINE vec<T, W> map_lanes(vec<T, W> a, F f) {
  vec<T, W> r;
  each_lane<W>([&](int i) { r.set(i, f(a[i])); });
  return r;
}
template <typename T, int W, typename F>
TILE_INLINE vec<T, W> map_lanes(vec<T, W> a, vec<T, W> b, F f) {
  vec<T, W> r;
  each_lane<W>([&](int i) { r.set(i, f(a[i], b[i])); });
  return r;
}
template <typename To, typename T, int W, typename F>
TILE_INLINE vec<To, W> map_lanes_to(vec<T, W> a, F f) {
  vec<To, W> r;
  each_lane<W>([&](int i) { r.set(i, f(a[i])); });
  return r;
}
template <typename T, int W>
TILE_INLINE vec<T, W> iota(T start = T(0)) {
  vec<T, W> r;
  each_lane<W>([&](int i) { r.set(i, static_cast<T>(start + static_cast<T>(i))); });
  return r;
}

// ---- Operators. Integer arithmetic wraps. The quotient and the remainder of a division by zero are 0.

namespace detail {

template <typename T>
TILE_INLINE T add_of(T a, T b) {
  if constexpr (is_float<T>) {
    return a + b;
  } else {
    return static_cast<T>(static_cast<uint_t<sizeof(T)>>(a) + static_cast<uint_t<sizeof(T)>>(b));
  }
}
template <typename T>
TILE_INLINE T sub_of(T a, T b) {
  if constexpr (is_float<T>) {
    return a - b;
  } else {
    return static_cast<T>(static_cast<uint_t<sizeof(T)>>(a) - static_cast<uint_t<sizeof(T)>>(b));
  }
}
template <typename T>
TILE_INLINE T neg_of(T a) {
  if constexpr (is_float<T>) {
    return -a;
  } else if constexpr (sizeof(T) <= 4) {
    return static_cast<T>(cuda::negate(static_cast<uint32_t>(a)));
  } else {
    return sub_of(T(0), a);
  }
}
template <typename T>
TILE_INLINE T mul_of(T a, T b) {
  if constexpr (is_float<T>) {
    return a * b;
  } else {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
}
template <typename T>
TILE_INLINE T div_of(T a, T b) {
  if constexpr (is_float<T>) {
    return a / b;
  } else {
    if (b == T(0)) return T(0);
    if constexpr (is_signed<T>) {
      if (b == T(-1)) return neg_of(a);
    }
    return static_cast<T>(a / b);
  }
}
template <typename T>
TILE_INLINE T rem_of(T a, T b) {
  if (b == T(0)) return T(0);
  if constexpr (is_signed<T>) {
    if (b == T(-1)) return T(0);
  }
  return static_cast<T>(a % b);
}

}  // namespace detail

#define TILE_BINARY(OP, EXPRESSION)                                   \
  template <typename T, int W>                                        \
  TILE_INLINE vec<T, W> operator OP(vec<T, W> a, vec<T, W> b) {       \
    return map_lanes(a, b, [](T x, T y) -> T { return EXPRESSION; }); \
  }                                                                   \
  template <typename T, int W>                                        \
  TILE_INLINE vec<T, W> operator OP(vec<T, W> a, T b) {               \
    return a OP splat<W>(b);                                          \
  }                                                                   \
  template <typename T, int W>                                        \
  TILE_INLINE vec<T, W> operator OP(T a, vec<T, W> b) {               \
    return splat<W>(a) OP b;                                          \
  }
TILE_BINARY(+, detail::add_of(x, y))
TILE_BINARY(-, detail::sub_of(x, y))
TILE_BINARY(*, detail::mul_of(x, y))
TILE_BINARY(/, detail::div_of(x, y))
TILE_BINARY(%, detail::rem_of(x, y))
TILE_BINARY(&, static_cast<T>(x& y))
TILE_BINARY(|, static_cast<T>(x | y))
TILE_BINARY(^, static_cast<T>(x ^ y))
TILE_BINARY(<<, static_cast<T>(x << y))
TILE_BINARY(>>, static_cast<T>(x >> y))
#undef TILE_BINARY

#define TILE_COMPARE(OP)                                                      \
  template <typename T, int W>                                                \
  TILE_INLINE mask<int(sizeof(T)), W> operator OP(vec<T, W> a, vec<T, W> b) { \
    mask<int(sizeof(T)), W> r;                                                \
    each_lane<W>([&](int i) { r.e[i] = a[i] OP b[i]; });                      \
    return r;                                                                 \
  }                                                                           \
  template <typename T, int W>                                                \
  TILE_INLINE mask<int(sizeof(T)), W> operator OP(vec<T, W> a, T b) {         \
    return a OP splat<W>(b);                                                  \
  }
TILE_COMPARE(==)
TILE_COMPARE(!=)
TILE_COMPARE(<)
TILE_COMPARE(<=)
TILE_COMPARE(>)
TILE_COMPARE(>=)
#undef TILE_COMPARE

#define TILE_LOGIC(OP)                                                       \
  template <int B, int W>                                                    \
  TILE_INLINE mask<B, W> operator OP(mask<B, W> a, mask<B, W> b) {           \
    each_lane<W>([&](int i) { a.e[i] = bool(int(a.e[i]) OP int(b.e[i])); }); \
    return a;                                                                \
  }
TILE_LOGIC(&)
TILE_LOGIC(|)
TILE_LOGIC(^)
#undef TILE_LOGIC
template <int B, int W>
TILE_INLINE mask<B, W> operator~(mask<B, W> a) {
  each_lane<W>([&](int i) { a.e[i] = !a.e[i]; });
  return a;
}
template <typename T, int W>
TILE_INLINE vec<T, W> operator~(vec<T, W> a) {
  return map_lanes(a, [](T x) -> T { return static_cast<T>(~x); });
}
template <typename T, int W>
TILE_INLINE vec<T, W> operator-(vec<T, W> a) {
  return map_lanes(a, [](T x) -> T { return detail::neg_of(x); });
}

// ---- Masks and conversions

template <int W, int B>
TILE_INLINE mask<B, W> splat_mask(mask<B, 1> m) {
  mask<B, W> r;
  each_lane<W>([&](int i) { r.e[i] = m.e[0]; });
  return r;
}
template <typename T, int W>
TILE_INLINE vec<T, 1> lane(vec<T, W> a, int i) {
  T r = a[0];
  each_lane<W>([&](int k) { r = k == i ? a[k] : r; });
  return {r};
}
template <int B, int W>
TILE_INLINE mask<B, 1> lane(mask<B, W> a, int i) {
  bool r = a[0];
  each_lane<W>([&](int k) { r = k == i ? a[k] : r; });
  return {{r}};
}
template <int To, int B, int W>
TILE_INLINE mask<To, W> convert_mask(mask<B, W> m) {
  mask<To, W> r;
  each_lane<W>([&](int i) { r.e[i] = m.e[i]; });
  return r;
}
template <typename T, int W>
TILE_INLINE mask<int(sizeof(T)), W> to_mask(vec<T, W> a) {
  return a != zero<T, W>();
}
template <typename T, int B, int W>
TILE_INLINE vec<T, W> from_mask(mask<B, W> m) {
  vec<T, W> r;
  each_lane<W>([&](int i) { r.set(i, m.e[i] ? T(1) : T(0)); });
  return r;
}
template <int B, typename T, int W>
TILE_INLINE vec<T, W> select(mask<B, W> m, vec<T, W> a, vec<T, W> b) {
  each_lane<W>([&](int i) { a.set(i, m.e[i] ? a[i] : b[i]); });
  return a;
}
template <int B, int W>
TILE_INLINE mask<B, W> select(mask<B, W> m, mask<B, W> a, mask<B, W> b) {
  each_lane<W>([&](int i) { a.e[i] = m.e[i] ? a.e[i] : b.e[i]; });
  return a;
}
template <int B, int W>
TILE_INLINE bool any(mask<B, W> m) {
  bool r = false;
  each_lane<W>([&](int i) { r = r || m.e[i]; });
  return r;
}
template <int B, int W>
TILE_INLINE bool all(mask<B, W> m) {
  return !any(~m);
}

template <typename To, typename T, int W>
TILE_INLINE vec<To, W> bit_cast(vec<T, W> a) {
  return map_lanes_to<To>(a, [](T x) -> To { return __builtin_bit_cast(To, x); });
}
// Converts each lane. Float to integer truncates toward zero. Conversions of floats to 8 or 16 bits go through int32_t,
// and to uint32_t through int64_t: the result is the low bits of the intermediate integer.
template <typename To, typename T, int W>
TILE_INLINE vec<To, W> convert(vec<T, W> a) {
  return map_lanes_to<To>(a, [](T x) -> To {
    if constexpr (is_float<T> && !is_float<To> && sizeof(To) < 4) {
      return static_cast<To>(static_cast<int32_t>(x));
    } else if constexpr (is_float<T> && is_same<To, uint32_t>) {
      return static_cast<To>(static_cast<int64_t>(x));
    } else {
      return static_cast<To>(x);
    }
  });
}

// Rounds to the precision of a 16-bit storage type. The result is a float again.
template <typename Storage, int W>
TILE_INLINE vec<float, W> round_to(vec<float, W> a) {
  if constexpr (is_same<Storage, half> || is_same<Storage, bfloat>) {
    return map_lanes(a, [](float x) { return cuda::to_float(cuda::from_float<Storage>(x)); });
  } else {
    return a;
  }
}

template <int W, typename T, typename F>
TILE_INLINE vec<T, W> lanes_of(int64_t, F f) {
  vec<T, W> r;
  each_lane<W>([&](int i) { r.set(i, f(i)); });
  return r;
}

// ---- Simple arithmetic, one or two instructions each

template <typename T, int W>
TILE_INLINE mask<int(sizeof(T)), W> is_nan(vec<T, W> a) {
  return a != a;
}
// Returns a * b, rounded. Compilers cannot contract this product to a fused multiply-add.
template <typename T, int W>
TILE_INLINE vec<T, W> mul_rounded(vec<T, W> a, vec<T, W> b) {
  return map_lanes(a, b, [](T x, T y) -> T {
    if constexpr (is_same<T, float>) {
      return ::__fmul_rn(x, y);
    } else {
      return ::__dmul_rn(x, y);
    }
  });
}
template <typename T, int W>
TILE_INLINE vec<T, W> fma(vec<T, W> a, vec<T, W> b, vec<T, W> c) {
  vec<T, W> r;
  each_lane<W>([&](int i) {
    if constexpr (sizeof(T) == 4) {
      r.set(i, __builtin_fmaf(a[i], b[i], c[i]));
    } else {
      r.set(i, __builtin_fma(a[i], b[i], c[i]));
    }
  });
  return r;
}
template <typename T, int W>
TILE_INLINE vec<T, W> fma(vec<T, W> a, T b, vec<T, W> c) {
  return fma(a, splat<W>(b), c);
}
template <typename T, int W>
TILE_INLINE vec<T, W> fma(vec<T, W> a, T b, T c) {
  return fma(a, splat<W>(b), splat<W>(c));
}
template <typename T, int W>
TILE_INLINE vec<T, W> abs(vec<T, W> a) {
  return map_lanes(a, [](T x) -> T {
    if constexpr (is_same<T, float>) {
      return __builtin_fabsf(x);
    } else if constexpr (is_same<T, double>) {
      return __builtin_fabs(x);
    } else if constexpr (is_signed<T>) {
      return x < T(0) ? detail::sub_of(T(0), x) : x;
    } else {
      return x;
    }
  });
}
// The magnitude of a with the sign of b.
template <int W>
TILE_INLINE vec<float, W> copy_sign(vec<float, W> a, vec<float, W> b) {
  return map_lanes(a, b, [](float x, float y) { return __builtin_copysignf(x, y); });
}
// Returns NaN if either operand is NaN.
template <typename T, int W>
TILE_INLINE vec<T, W> max(vec<T, W> a, vec<T, W> b) {
  return map_lanes(a, b, [](T x, T y) -> T {
    if constexpr (is_same<T, float>) {
      return cuda::max_or_nan(x, y);
    } else {
      return x > y || x != x ? x : y;
    }
  });
}
template <typename T, int W>
TILE_INLINE vec<T, W> min(vec<T, W> a, vec<T, W> b) {
  return map_lanes(a, b, [](T x, T y) -> T {
    if constexpr (is_same<T, float>) {
      return cuda::min_or_nan(x, y);
    } else {
      return x < y || x != x ? x : y;
    }
  });
}

namespace detail {

// Compute a > b ? a : b, and a < b ? a : b: if either operand is NaN, the result is b.
template <typename T, int W>
TILE_INLINE vec<T, W> greater_or_second(vec<T, W> a, vec<T, W> b) {
  return map_lanes(a, b, [](T x, T y) { return x > y ? x : y; });
}
template <typename T, int W>
TILE_INLINE vec<T, W> less_or_second(vec<T, W> a, vec<T, W> b) {
  return map_lanes(a, b, [](T x, T y) { return x < y ? x : y; });
}

}  // namespace detail

template <typename T, int W>
TILE_INLINE vec<T, W> max(vec<T, W> a, T b) {
  return max(a, splat<W>(b));
}
template <typename T, int W>
TILE_INLINE vec<T, W> min(vec<T, W> a, T b) {
  return min(a, splat<W>(b));
}

#define TILE_ROUNDING(NAME, BUILTIN)        \
  template <typename T, int W>              \
  TILE_INLINE vec<T, W> NAME(vec<T, W> a) { \
    return map_lanes(a, [](T x) -> T {      \
      if constexpr (is_same<T, float>) {    \
        return __builtin_##BUILTIN##f(x);   \
      } else {                              \
        return __builtin_##BUILTIN(x);      \
      }                                     \
    });                                     \
  }
TILE_ROUNDING(floor, floor)
TILE_ROUNDING(ceil, ceil)
TILE_ROUNDING(trunc, trunc)
TILE_ROUNDING(round_even, rint)
TILE_ROUNDING(sqrt, sqrt)
#undef TILE_ROUNDING

// ---- Memory

namespace detail {

template <int Bytes>
struct alignas(Bytes) bytes_of {
  uint_t<(Bytes < 4 ? Bytes : 4)> word[Bytes < 4 ? 1 : Bytes / 4];
};

// An access to W elements, divided into pieces of `Aligned` elements. A piece is accessed at once and has at most 16
// bytes.
template <int W, int Aligned, typename T>
struct access {
  static constexpr int kWanted = Aligned < W ? Aligned : W;
  static constexpr int kPiece = kWanted * int(sizeof(T)) > 16 ? 16 / int(sizeof(T)) : kWanted;
  static constexpr int kPieces = W / kPiece;
  using piece = bytes_of<kPiece* int(sizeof(T))>;
  struct whole {
    piece part[kPieces];
  };
  struct elements {
    T e[W];
  };
};

template <int W, int Aligned, typename T>
TILE_INLINE auto load_elements(const T* p) {
  using A = access<W, Aligned, T>;
  typename A::whole raw;
  each_lane<A::kPieces>([&](int i) { raw.part[i] = reinterpret_cast<const typename A::piece*>(p)[i]; });
  return __builtin_bit_cast(typename A::elements, raw);
}
template <int W, int Aligned, typename T>
TILE_INLINE void store_elements(T* p, typename access<W, Aligned, T>::elements e) {
  using A = access<W, Aligned, T>;
  const auto raw = __builtin_bit_cast(typename A::whole, e);
  each_lane<A::kPieces>([&](int i) { reinterpret_cast<typename A::piece*>(p)[i] = raw.part[i]; });
}

template <typename T>
TILE_INLINE compute_t<T> decode(T x) {
  if constexpr (is_same<T, compute_t<T>>) {
    return x;
  } else if constexpr (is_same<T, half> || is_same<T, bfloat>) {
    return cuda::to_float(x);
  } else {
    return T::decode(x.bits);
  }
}
template <typename T>
TILE_INLINE T encode(compute_t<T> x) {
  if constexpr (is_same<T, compute_t<T>>) {
    return x;
  } else if constexpr (is_same<T, half> || is_same<T, bfloat>) {
    return cuda::from_float<T>(x);
  } else {
    // A cast has already rounded the value, so an infinity occurs here only if that cast did not saturate.
    return {T::encode(x, !(T::has_infinity && __builtin_isinf(x)))};
  }
}

}  // namespace detail

// Loads W neighbouring elements from p, which is aligned to `Aligned` elements.
template <int W, int Aligned = 1, typename T>
TILE_INLINE vec<compute_t<T>, W> load(const T* p) {
  const auto raw = detail::load_elements<W, Aligned>(p);
  vec<compute_t<T>, W> r;
  each_lane<W>([&](int i) { r.set(i, detail::decode(raw.e[i])); });
  return r;
}
template <int Aligned = 1, typename T, int W>
TILE_INLINE void store(T* p, vec<compute_t<T>, W> a) {
  typename detail::access<W, Aligned, T>::elements raw;
  if constexpr ((is_same<T, half> || is_same<T, bfloat>)&&W % 2 == 0) {
    struct pair {
      T low, high;
    };
    each_lane<W / 2>([&](int i) {
      const pair both = __builtin_bit_cast(pair, cuda::pack<T>(a[2 * i], a[2 * i + 1]));
      raw.e[2 * i] = both.low;
      raw.e[2 * i + 1] = both.high;
    });
  } else {
    each_lane<W>([&](int i) { raw.e[i] = detail::encode<T>(a[i]); });
  }
  detail::store_elements<W, Aligned>(p, raw);
}
template <int W, typename T>
TILE_INLINE vec<compute_t<T>, W> load_strided(const T* p, int64_t stride) {
  vec<compute_t<T>, W> r;
  each_lane<W>([&](int i) { r.set(i, detail::decode(p[i * stride])); });
  return r;
}
template <typename T, int W>
TILE_INLINE void store_strided(T* p, int64_t stride, vec<compute_t<T>, W> a) {
  each_lane<W>([&](int i) { p[i * stride] = detail::encode<T>(a[i]); });
}

}  // namespace heddle::tile
