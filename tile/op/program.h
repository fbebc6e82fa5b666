// Operations of tile-language programs on a CPU, in addition to vectors and their loops: masked accesses, numbers of
// every storage type, reductions with any combining function, atomics. src/lang/cpu generates the code that uses them.
// The type of an i1 value is mask<4, W>. A pointer is represented by its address, and a narrow float by a rounded
// float.
#pragma once

#include "tile/core/cpu_program.h"
#include "tile/core/tuple.h"
#include "tile/op/along.h"
#include "tile/op/functions.h"
#include "tile/op/math.h"
#include "tile/op/narrow.h"
#include "tile/op/reduce.h"
#include "tile/op/transpose.h"
#include "tile/op/wait.h"

namespace heddle::tile {

using f8e4m3b15 = minifloat<4, 3, 15, false, 0x7e, 0x7f, false>;

// ---- Lanes

// A mask that is known at compile time: all lanes are set or none is. Code that uses it is folded.
template <bool Set, int W>
struct known_mask : mask<4, W> {};
template <bool Set, int W, typename V, typename U>
TILE_INLINE auto select(known_mask<Set, W>, const V& a, const U& b) {
  if constexpr (Set) {
    return a;
  } else {
    return b;
  }
}
template <bool Set, int W>
TILE_INLINE auto operator&(known_mask<Set, W> a, mask<4, W> b) {
  if constexpr (Set) {
    return b;
  } else {
    return a;
  }
}
template <bool Set, int W>
TILE_INLINE auto operator&(mask<4, W> a, known_mask<Set, W> b) {
  return b & a;
}
template <bool Set, bool Other, int W>
TILE_INLINE known_mask<Set && Other, W> operator&(known_mask<Set, W>, known_mask<Other, W>) {
  return {{splat<W>(int32_t(Set && Other ? -1 : 0))}};
}

// The mask of the first n (or N) of W lanes.
template <int W, int N>
TILE_INLINE known_mask<N == W, W> active(index_constant<N>) {
  static_assert(N == 0 || N == W);
  return {{splat<W>(int32_t(N == W ? -1 : 0))}};
}
template <int W>
TILE_INLINE mask<4, W> active(int64_t n) {
  return first_lanes<4, W>(n);
}

template <int W, typename T>
TILE_INLINE vec<T, W> widen(vec<T, 1> a) {
  return splat<W>(a.v);
}
template <int W, int B>
TILE_INLINE mask<B, W> widen(mask<B, 1> a) {
  return splat_mask<W>(a);
}

// Accesses to values in a buffer of the program. An i1 value is stored as the lanes of its mask.
template <int W, typename T, typename N>
TILE_INLINE vec<T, W> held(const T* p, N n) {
  return fetch<W>(p, n);
}
template <int W, typename N>
TILE_INLINE mask<4, W> held_mask(const int32_t* p, N n) {
  return {fetch<W>(p, n)};
}
template <typename T, int W, typename N>
TILE_INLINE void hold(T* p, vec<T, W> v, N n) {
  put(p, v, n);
}
template <int W, typename N>
TILE_INLINE void hold(int32_t* p, mask<4, W> m, N n) {
  put(p, m.v, n);
}
template <typename T, int W, typename N>
TILE_INLINE void hold_strided(T* p, int64_t stride, vec<T, W> v, N n) {
  put_strided(p, stride, v, n);
}
template <int W, typename N>
TILE_INLINE void hold_strided(int32_t* p, int64_t stride, mask<4, W> m, N n) {
  put_strided(p, stride, m.v, n);
}

template <typename T>
TILE_INLINE void copy_buffer(T* to, const T* from, int64_t n) {
  __builtin_memcpy(to, from, size_t(n) * sizeof(T));
}
template <typename T>
TILE_INLINE void swap_buffers(T*& a, T*& b) {
  T* const c = a;
  a = b;
  b = c;
}

// ---- Memory. T is the type in memory. For an i1, T is uint8_t; to_bool() converts its values to masks.

template <typename T, int W>
TILE_INLINE mask<4, W> to_bool(vec<T, W> a) {
  return convert_mask<4>(to_mask(a));
}

template <typename T>
TILE_INLINE const T* pointer(vec<int64_t, 1> address) {
  return reinterpret_cast<const T*>(address.v);
}
template <typename T>
TILE_INLINE T* writable(vec<int64_t, 1> address) {
  return reinterpret_cast<T*>(address.v);
}

// Accesses the first n of W neighbouring elements. A run-time n may be any number; a compile-time n is 0 or W.
template <int W, typename T>
TILE_INLINE vec<compute_t<T>, W> load_first(const T* p, int64_t n) {
  if (n >= W) return load<W>(p);
  return load_n<W>(p, n < 0 ? 0 : n);
}
template <int W, typename T, int N>
TILE_INLINE vec<compute_t<T>, W> load_first(const T* p, index_constant<N>) {
  static_assert(N == 0 || N == W);
  if constexpr (N == 0) {
    return zero<compute_t<T>, W>();
  } else {
    return load<W>(p);
  }
}
template <typename T, typename V>
TILE_INLINE void store_first(T* p, V v, int64_t n) {
  if (n >= V::width) {
    store(p, v);
  } else if (n > 0) {
    store_n(p, v, n);
  }
}
template <typename T, typename V, int N>
TILE_INLINE void store_first(T* p, V v, index_constant<N>) {
  static_assert(N == 0 || N == V::width);
  if constexpr (N > 0) store(p, v);
}

// Loads one element for each lane that is set in the mask. The other lanes are 0.
template <typename T, int W>
TILE_INLINE vec<compute_t<T>, W> load_at(vec<int64_t, W> address, mask<4, W> m) {
  T buffer[W] = {};
  for (int i = 0; i < W; ++i) {
    if (m[i]) buffer[i] = *reinterpret_cast<const T*>(address[i]);
  }
  return load<W>(static_cast<const T*>(buffer));
}
template <typename T, int W>
TILE_INLINE void store_at(vec<int64_t, W> address, vec<compute_t<T>, W> v, mask<4, W> m) {
  T buffer[W];
  store(static_cast<T*>(buffer), v);
  for (int i = 0; i < W; ++i) {
    if (m[i]) *reinterpret_cast<T*>(address[i]) = buffer[i];
  }
}

// Loads elements first, first + 1, ... of a dimension with `size` elements and stride `stride`. p is the address of
// element 0. Elements outside the dimension are `padding`. `inside`: the indices of all other dimensions are valid;
// otherwise all elements are `padding`.
template <int W, typename T, typename N>
TILE_INLINE vec<compute_t<T>, W> load_window(const T* p, int64_t stride, int64_t first, int64_t size, bool inside, N n,
                                             compute_t<T> padding) {
  if (inside && stride == 1 && first >= 0 && size - first >= W && int64_t(n) >= W) return load<W>(p + first);
  T buffer[W] = {};
  for (int i = 0; i < W && i < int64_t(n); ++i) {
    if (inside && first + i >= 0 && first + i < size) buffer[i] = p[(first + i) * stride];
  }
  vec<compute_t<T>, W> r = load<W>(static_cast<const T*>(buffer));
  for (int i = 0; i < W; ++i) {
    if (!inside || first + i < 0 || first + i >= size) r.set(i, padding);
  }
  return r;
}
template <int W, typename T, typename N>
TILE_INLINE void store_window(T* p, int64_t stride, int64_t first, int64_t size, bool inside, vec<compute_t<T>, W> v,
                              N n) {
  if (inside && stride == 1 && first >= 0 && size - first >= W && int64_t(n) >= W) return store(p + first, v);
  T buffer[W];
  store(static_cast<T*>(buffer), v);
  for (int i = 0; i < W && i < int64_t(n); ++i) {
    if (inside && first + i >= 0 && first + i < size) p[(first + i) * stride] = buffer[i];
  }
}

// Gathers from a buffer: lane i is the element at i * stride + index[i] * step. Indices are clamped to the extent.
template <int W, typename T, typename I, typename N>
TILE_INLINE vec<T, W> picked(const T* p, int64_t stride, vec<I, W> index, int64_t step, int64_t extent, N n) {
  vec<T, W> r = zero<T, W>();
  for (int i = 0; i < W && i < int64_t(n); ++i) {
    r.set(i, p[i * stride + clamp_index(int64_t(index[i]), 0, extent - 1) * step]);
  }
  return r;
}

// ---- Numbers

// Converts values to their bits in the memory type S, and back.
template <typename S, int W>
TILE_INLINE vec<uint_t<sizeof(S)>, W> to_bits(vec<compute_t<S>, W> v) {
  S buffer[W];
  store(static_cast<S*>(buffer), v);
  return detail::load_raw<W, uint_t<sizeof(S)>>(buffer);
}
template <typename S, int W>
TILE_INLINE vec<compute_t<S>, W> from_bits(vec<uint_t<sizeof(S)>, W> bits) {
  S buffer[W];
  detail::store_raw(buffer, bits);
  return load<W>(static_cast<const S*>(buffer));
}

// Loads one element exactly at this point of the program, since other programs may write to it.
template <typename T>
TILE_INLINE vec<compute_t<T>, 1> load_now(vec<int64_t, 1> address) {
  const vec<uint_t<sizeof(T)>, 1> bits{bits_now<T>(address)};
  return from_bits<T>(bits);
}
template <typename T>
TILE_INLINE vec<compute_t<T>, 1> load_now(vec<int64_t, 1> address, mask<4, 1> m) {
  return m[0] ? load_now<T>(address) : zero<compute_t<T>, 1>();
}

// Rounds to a value of type S, toward zero.
template <typename S, int W>
TILE_INLINE vec<float, W> truncate_storage(vec<float, W> v) {
  const vec<float, W> nearest = round_storage<S, true>(v);
  const vec<float, W> below = from_bits<S>(to_bits<S>(nearest) - uint_t<sizeof(S)>(1));
  return select(abs(nearest) > abs(v), below, nearest);
}
template <int W>
TILE_INLINE vec<float, W> truncate_double(vec<double, W> v) {
  return map_lanes_to<float>(v, [](double x) {
    const float nearest = float(x);
    if (!(__builtin_fabs(double(nearest)) > __builtin_fabs(x))) return nearest;
    return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, nearest) - 1u);
  });
}

// The minimum and maximum. If one operand is NaN, returns the other.
template <typename T, int W>
TILE_INLINE vec<T, W> min_number(vec<T, W> a, vec<T, W> b) {
  if constexpr (is_float<T>) {
    return select(is_nan(b), a, detail::less_or_second(a, b));
  } else {
    return min(a, b);
  }
}
template <typename T, int W>
TILE_INLINE vec<T, W> max_number(vec<T, W> a, vec<T, W> b) {
  if constexpr (is_float<T>) {
    return select(is_nan(b), a, detail::greater_or_second(a, b));
  } else {
    return max(a, b);
  }
}

template <typename T, int W>
TILE_INLINE vec<T, W> multiply_high(vec<T, W> a, vec<T, W> b) {
  return map_lanes(a, b, [](T x, T y) -> T {
    if constexpr (sizeof(T) == 8) {
      __extension__ typedef __int128 wide;
      __extension__ typedef unsigned __int128 unsigned_wide;
      if constexpr (is_signed<T>) {
        return T((wide(x) * y) >> 64);
      } else {
        return T((unsigned_wide(x) * y) >> 64);
      }
    } else {
      return T((int64_t(x) * int64_t(y)) >> (8 * sizeof(T)));
    }
  });
}
template <typename T, int W>
TILE_INLINE vec<int32_t, W> leading_zeros(vec<T, W> a) {
  return map_lanes_to<int32_t>(a, [](T x) -> int32_t {
    const auto bits = uint64_t(uint_t<sizeof(T)>(x));
    return bits == 0 ? 8 * int(sizeof(T)) : __builtin_clzll(bits) - (64 - 8 * int(sizeof(T)));
  });
}
template <typename T, int W>
TILE_INLINE vec<int32_t, W> count_ones(vec<T, W> a) {
  return map_lanes_to<int32_t>(a, [](T x) -> int32_t { return __builtin_popcountll(uint64_t(uint_t<sizeof(T)>(x))); });
}
template <typename T, int W>
TILE_INLINE vec<int32_t, W> first_one(vec<T, W> a) {
  return map_lanes_to<int32_t>(a, [](T x) -> int32_t { return __builtin_ffsll(int64_t(x)); });
}
template <typename T, int W>
TILE_INLINE vec<T, W> reverse_bits(vec<T, W> a) {
  return map_lanes(a, [](T x) -> T {
    auto from = uint_t<sizeof(T)>(x);
    uint64_t to = 0;
    for (size_t i = 0; i < 8 * sizeof(T); ++i, from = uint_t<sizeof(T)>(from >> 1)) to = (to << 1) | (from & 1);
    return T(to);
  });
}

// ---- Products of tiles in buffers

namespace detail {

// C += A B for a block of R rows and V vectors of columns.
template <int R, int V, int W, int N, int K, typename T>
TILE_INLINE void multiply_block(const T* a, const T* b, T* c) {
  vec<T, W> sum[R][V];
  static_for<R>([&](auto i) __attribute__((always_inline)) {
    static_for<V>([&](auto j) __attribute__((always_inline)) { sum[i][j] = load<W>(c + i * N + j * W); });
  });
  for (int64_t k = 0; k < K; ++k) {
    vec<T, W> right[V];
    static_for<V>([&](auto j) __attribute__((always_inline)) { right[j] = load<W>(b + k * N + j * W); });
    static_for<R>([&](auto i) __attribute__((always_inline)) {
      const vec<T, W> left = splat<W>(a[i * K + k]);
      static_for<V>([&](auto j) __attribute__((always_inline)) { sum[i][j] = fma(left, right[j], sum[i][j]); });
    });
  }
  static_for<R>([&](auto i) __attribute__((always_inline)) {
    static_for<V>([&](auto j) __attribute__((always_inline)) { store(c + i * N + j * W, sum[i][j]); });
  });
}

// C += A B for all rows and V vectors of columns.
template <int V, int W, int M, int N, int K, typename T>
void multiply_columns(const T* a, const T* b, T* c) {
  constexpr int rows = TILE_AVX512 ? 12 : 6;
  int64_t i = 0;
  for (; i + rows <= M; i += rows) multiply_block<rows, V, W, N, K>(a + i * K, b, c + i * N);
  if constexpr (M % rows != 0) multiply_block<M % rows, V, W, N, K>(a + i * K, b, c + i * N);
}

}  // namespace detail

// C += A B for row-major tiles A (M x K), B (K x N) and C (M x N). Integers are summed in 32 bits.
template <int M, int N, int K, typename T>
void multiply_tiles(const T* a, const T* b, T* c) requires(is_float<T>) {
  constexpr int W = kVectorBytes / int(sizeof(T));
  int64_t j = 0;
  for (; j + 2 * W <= N; j += 2 * W) detail::multiply_columns<2, W, M, N, K>(a, b + j, c + j);
  if constexpr (N % (2 * W) >= W) {
    detail::multiply_columns<1, W, M, N, K>(a, b + j, c + j);
    j += W;
  }
  if constexpr (N % W != 0) {
    for (int64_t i = 0; i < M; ++i) {
      for (int64_t k = 0; k < K; ++k) {
        for (int64_t column = j; column < N; ++column) c[i * N + column] += a[i * K + k] * b[k * N + column];
      }
    }
  }
}
template <int M, int N, int K, typename A, typename B>
void multiply_tiles(const A* a, const B* b, int32_t* c) {
  for (int64_t i = 0; i < M; ++i) {
    for (int64_t k = 0; k < K; ++k) {
      const int32_t left = a[i * K + k];
      for (int64_t j = 0; j < N; ++j) c[i * N + j] += left * int32_t(b[k * N + j]);
    }
  }
}

template <typename S>
void round_buffer(float* p, int64_t count) {
  for_lanes<kLanes>(0, count,
                    [&]<int W>(int64_t i, auto n) { put(p + i, round_storage<S, true>(fetch<W>(p + i, n)), n); });
}

// Converts an operand of a scaled product to floats. A has rows x k elements and rows x (k / 32) scales. B is a batch
// of `rows` matrices; each has k x columns elements and columns x (k / 32) scales. A byte holds two f4e2m1 elements
// that are neighbours along k, the first one in the low bits.
template <typename S, bool IsA, typename T>
void unpack_scaled(float* to, const T* from, const uint8_t* scales, int64_t rows, int64_t k, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        float value;
        if constexpr (is_same<S, f4e2m1>) {
          const int byte = int(from[(r * (k / 2) + i / 2) * columns + j]);
          value = S::decode(uint8_t((byte >> (i % 2 * 4)) & 15));
        } else if constexpr (is_same<S, float>) {
          value = from[(r * k + i) * columns + j];
        } else {
          value = S::decode(uint8_t(from[(r * k + i) * columns + j]));
        }
        const int64_t line = IsA ? r : r * columns + j;
        if (scales != nullptr) value *= f8e8m0::decode(scales[line * (k / 32) + i / 32]);
        to[(r * k + i) * columns + j] = value;
      }
    }
  }
}

// ---- Atomics

enum class atomic_kind { add, min, max, bit_and, bit_or, bit_xor, exchange };

namespace detail {

template <atomic_kind Kind, typename C>
TILE_INLINE C atomic_result(C old, C value) {
  const vec<C, 1> a{old}, b{value};
  if constexpr (Kind == atomic_kind::add) {
    return (a + b).v;
  } else if constexpr (Kind == atomic_kind::min) {
    return min_number(a, b).v;
  } else if constexpr (Kind == atomic_kind::max) {
    return max_number(a, b).v;
  } else if constexpr (Kind == atomic_kind::exchange) {
    return value;
  } else if constexpr (Kind == atomic_kind::bit_and) {
    return (a & b).v;
  } else if constexpr (Kind == atomic_kind::bit_or) {
    return (a | b).v;
  } else {
    return (a ^ b).v;
  }
}

// Atomically replaces the value at an address by update(value). Returns the old value.
template <typename T, typename Update>
TILE_INLINE compute_t<T> replace(int64_t address, const Update& update) {
  using U = uint_t<sizeof(T)>;
  U* const p = reinterpret_cast<U*>(address);
  U seen = __atomic_load_n(p, __ATOMIC_RELAXED);
  for (;;) {
    const compute_t<T> old = from_bits<T>(vec<U, 1>{seen}).v;
    const U next = to_bits<T>(vec<compute_t<T>, 1>{update(old)}).v;
    if (__atomic_compare_exchange_n(p, &seen, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return old;
  }
}

// Atomically updates the value at an address, like replace(). Uses a single instruction without retries if possible.
template <typename T, atomic_kind Kind>
TILE_INLINE compute_t<T> update(int64_t address, compute_t<T> value) {
  constexpr bool is_integer = is_same<compute_t<T>, T> && !is_float<T>;
  T* const p = reinterpret_cast<T*>(address);
  if constexpr (is_integer && Kind == atomic_kind::add) {
    return __atomic_fetch_add(p, value, __ATOMIC_ACQ_REL);
  } else if constexpr (is_integer && Kind == atomic_kind::exchange) {
    return __atomic_exchange_n(p, value, __ATOMIC_ACQ_REL);
  } else if constexpr (is_integer && Kind == atomic_kind::bit_and) {
    return __atomic_fetch_and(p, value, __ATOMIC_ACQ_REL);
  } else if constexpr (is_integer && Kind == atomic_kind::bit_or) {
    return __atomic_fetch_or(p, value, __ATOMIC_ACQ_REL);
  } else if constexpr (is_integer && Kind == atomic_kind::bit_xor) {
    return __atomic_fetch_xor(p, value, __ATOMIC_ACQ_REL);
  } else {
    return replace<T>(address, [&](compute_t<T> old) { return atomic_result<Kind>(old, value); });
  }
}

}  // namespace detail

// Updates memory once for each lane that is set in the mask. Returns the old values, and 0 for the other lanes.
template <typename T, atomic_kind Kind, int W>
TILE_INLINE vec<compute_t<T>, W> atomic_update(vec<int64_t, W> address, vec<compute_t<T>, W> value, mask<4, W> m) {
  vec<compute_t<T>, W> r = zero<compute_t<T>, W>();
  for (int i = 0; i < W; ++i) {
    if (!m[i]) continue;
    r.set(i, detail::update<T, Kind>(address[i], value[i]));
  }
  return r;
}
// Updates the elements of a window. The parameters are as in load_window().
template <atomic_kind Kind, typename T, int W, typename N>
TILE_INLINE void update_window(T* p, int64_t stride, int64_t first, int64_t size, bool inside,
                               vec<compute_t<T>, W> value, N n) {
  for (int i = 0; i < W && i < int64_t(n); ++i) {
    if (!inside || first + i < 0 || first + i >= size) continue;
    detail::update<T, Kind>(reinterpret_cast<int64_t>(p + (first + i) * stride), value[i]);
  }
}
// Atomic compare-and-swap for the set lanes. Compares the bits, as the hardware does.
template <typename T, int W>
TILE_INLINE vec<compute_t<T>, W> atomic_compare(vec<int64_t, W> address, vec<compute_t<T>, W> expected,
                                                vec<compute_t<T>, W> value, mask<4, W> m) {
  using U = uint_t<sizeof(T)>;
  vec<U, W> seen = to_bits<T>(expected);
  const vec<U, W> next = to_bits<T>(value);
  for (int i = 0; i < W; ++i) {
    if (!m[i]) continue;
    U old = seen[i];
    __atomic_compare_exchange_n(reinterpret_cast<U*>(address[i]), &old, next[i], false, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
    seen.set(i, old);
  }
  return from_bits<T>(seen);
}

}  // namespace heddle::tile
