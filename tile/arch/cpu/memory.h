// Vector loads and stores. A pointer needs only the alignment of its element type. 16-bit floats are converted to float
// on load and from float on store.
#pragma once

#include "tile/arch/cpu/convert.h"
#include "tile/arch/cpu/lanes.h"
#include "tile/arch/cpu/vec_types.h"

namespace heddle::tile {

namespace detail {

template <int W, typename T>
TILE_INLINE vec<T, W> load_raw(const void* p) {
  vec<T, W> r;
  if constexpr (is_wide<T, W>) {
    r.lo = load_raw<W / 2, T>(p);
    r.hi = load_raw<W / 2, T>(static_cast<const char*>(p) + W / 2 * sizeof(T));
  } else {
    __builtin_memcpy(&r.v, p, sizeof(r.v));
  }
  return r;
}

template <typename T, int W>
TILE_INLINE void store_raw(void* p, vec<T, W> a) {
  if constexpr (is_wide<T, W>) {
    store_raw(p, a.lo);
    store_raw(static_cast<char*>(p) + W / 2 * sizeof(T), a.hi);
  } else {
    __builtin_memcpy(p, &a.v, sizeof(a.v));
  }
}

// A mask whose lowest n bits are set, for 0 <= n <= 64.
TILE_INLINE uint64_t first_bits(int64_t n) {
  return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
}

#if TILE_AVX2 && !TILE_AVX512
// A mask register: all ones in the lanes below n, zeros in the others.
TILE_INLINE vec<int32_t, 8>::native lanes_below(int32_t n) {
  return vec<int32_t, 8>::native{0, 1, 2, 3, 4, 5, 6, 7} < n;
}
TILE_INLINE vec<long long, 4>::native lanes_below(int64_t n) {
  return vec<long long, 4>::native{0, 1, 2, 3} < static_cast<long long>(n);
}
#endif

template <int W, typename T>
TILE_INLINE vec<T, W> load_raw_n(const T* p, int64_t n) {
  if (__builtin_constant_p(n) && n >= W) return load_raw<W, T>(p);
  if constexpr (is_wide<T, W>) {
    constexpr int H = W / 2;
    if (n <= H) return join(load_raw_n<H>(p, n), zero<T, H>());
    return join(load_raw<H, T>(p), load_raw_n<H>(p + H, n - H));
#if TILE_AVX512
  } else if constexpr (W * sizeof(T) == 64) {
    const uint64_t k = first_bits(n);
    vec<T, W> r;
    if constexpr (sizeof(T) == 4) {
      r.v =
          (typename vec<T, W>::native)__builtin_ia32_loadups512_mask((const float*)p, vec<float, 16>{}.v, uint16_t(k));
    } else if constexpr (sizeof(T) == 8) {
      r.v =
          (typename vec<T, W>::native)__builtin_ia32_loadupd512_mask((const double*)p, vec<double, 8>{}.v, uint8_t(k));
    } else {
      r = zero<T, W>();
      __builtin_memcpy(&r.v, p, size_t(n) * sizeof(T));
    }
    return r;
#if TILE_RESIZES_INTS
  } else if constexpr (W == 16 && sizeof(T) == 1) {
    return {(typename vec<T, W>::native)__builtin_ia32_loaddquqi128_mask((const char*)p, sixteen_bytes{},
                                                                         uint16_t(first_bits(n)))};
  } else if constexpr (W == 16 && sizeof(T) == 2) {
    return {(typename vec<T, W>::native)__builtin_ia32_loaddquhi256_mask((const short*)p, half_shorts{},
                                                                         uint16_t(first_bits(n)))};
#endif
#elif TILE_AVX2
  } else if constexpr (W * sizeof(T) == 32 && sizeof(T) == 4) {
    vec<T, W> r;
    r.v =
        (typename vec<T, W>::native)__builtin_ia32_maskloadps256((const vec<float, 8>::native*)p, lanes_below(int(n)));
    return r;
  } else if constexpr (W * sizeof(T) == 32 && sizeof(T) == 8) {
    vec<T, W> r;
    r.v = (typename vec<T, W>::native)__builtin_ia32_maskloadpd256((const vec<double, 4>::native*)p, lanes_below(n));
    return r;
#endif
  } else if constexpr (W == 1) {
    return n > 0 ? vec<T, 1>{p[0]} : vec<T, 1>{};
  } else {
    T buffer[W] = {};
    for (int64_t i = 0; i < n && i < W; ++i) buffer[i] = p[i];
    return load_raw<W, T>(buffer);
  }
}

template <typename T, int W>
TILE_INLINE void store_raw_n(T* p, vec<T, W> a, int64_t n) {
  if (__builtin_constant_p(n) && n >= W) return store_raw(p, a);
  if constexpr (is_wide<T, W>) {
    constexpr int H = W / 2;
    if (n <= H) {
      store_raw_n(p, a.lo, n);
    } else {
      store_raw(p, a.lo);
      store_raw_n(p + H, a.hi, n - H);
    }
#if TILE_AVX512
  } else if constexpr (W * sizeof(T) == 64 && sizeof(T) == 4) {
    __builtin_ia32_storeups512_mask((float*)p, (vec<float, 16>::native)a.v, uint16_t(first_bits(n)));
  } else if constexpr (W * sizeof(T) == 64 && sizeof(T) == 8) {
    __builtin_ia32_storeupd512_mask((double*)p, (vec<double, 8>::native)a.v, uint8_t(first_bits(n)));
#if TILE_RESIZES_INTS
  } else if constexpr (W == 16 && sizeof(T) == 1) {
    __builtin_ia32_storedquqi128_mask((char*)p, (sixteen_bytes)a.v, uint16_t(first_bits(n)));
  } else if constexpr (W == 16 && sizeof(T) == 2) {
    __builtin_ia32_storedquhi256_mask((short*)p, (half_shorts)a.v, uint16_t(first_bits(n)));
#endif
#endif
  } else if constexpr (W == 1) {
    if (n > 0) p[0] = a.v;
  } else {
    constexpr int H = W / 2;
    if (n >= H) {
      store_raw(p, low_half(a));
      store_raw_n(p + H, high_half(a), n - H);
    } else {
      store_raw_n(p, low_half(a), n);
    }
  }
}

}  // namespace detail

// load() loads W consecutive elements; store() stores them.
template <int W, typename T>
TILE_INLINE vec<compute_t<T>, W> load(const T* p) {
  return detail::widen<T>(detail::load_raw<W, detail::bits_t<T>>(p));
}

template <typename T, int W>
TILE_INLINE void store(T* p, vec<compute_t<T>, W> a) {
  detail::store_raw(p, detail::narrow<T>(a));
}

// load_n() loads the first n elements (0 <= n <= W) and sets the other lanes to zero. store_n() stores the first n
// lanes. Memory after the n elements is not accessed.
template <int W, typename T>
TILE_INLINE vec<compute_t<T>, W> load_n(const T* p, int64_t n) {
  return detail::widen<T>(detail::load_raw_n<W>(reinterpret_cast<const detail::bits_t<T>*>(p), n));
}

template <typename T, int W>
TILE_INLINE void store_n(T* p, vec<compute_t<T>, W> a, int64_t n) {
  detail::store_raw_n(reinterpret_cast<detail::bits_t<T>*>(p), detail::narrow<T>(a), n);
}

namespace detail {

template <typename T, int First, typename F, int... I>
TILE_INLINE vec<T, sizeof...(I)> register_of(F at, indices<I...>) {
  return {typename vec<T, sizeof...(I)>::native{at(First + I)...}};
}
template <typename T, int W, int First, typename F>
TILE_INLINE vec<T, W> lanes_by(F at) {
  if constexpr (W == 1) {
    return {at(First)};
  } else if constexpr (W * sizeof(T) > 16) {
    return join(lanes_by<T, W / 2, First>(at), lanes_by<T, W / 2, First + W / 2>(at));
  } else {
    return register_of<T, First>(at, make_indices<W>{});
  }
}

// Loads the elements at addresses at(0), ..., at(W - 1). Inserts each element into a register as it is loaded. Loading
// them from a temporary array would have to wait until the narrow stores to the array have left the store buffer.
template <int W, typename T, typename F>
TILE_INLINE vec<compute_t<T>, W> load_each(F at) {
  return widen<T>(lanes_by<bits_t<T>, W, 0>([&](int i) { return *(const bits_t<T>*)at(i); }));
}

// The even lanes of a (0, 2, 4, ...), followed by the odd lanes of b (1, 3, 5, ...).
template <typename T, int W, int... I>
TILE_INLINE vec<T, W> even_then_odd(vec<T, W> a, vec<T, W> b, indices<I...>) {
  return {__builtin_shufflevector(a.v, b.v, (I < W / 2 ? 2 * I : 2 * I + 1)...)};
}

}  // namespace detail

// Loads and stores of elements that are `stride` elements apart. The _n functions access only the first n elements.
template <int W, typename T>
TILE_INLINE vec<compute_t<T>, W> load_strided(const T* p, int64_t stride) {
  if constexpr (W > 1 && sizeof(T) >= 4 && !is_wide<T, W>) {
    // The second load starts at p + W - 1 instead of p + W, so that nothing after the last element is read.
    if (stride == 2) return detail::even_then_odd(load<W>(p), load<W>(p + W - 1), detail::make_indices<W>{});
  }
  return detail::load_each<W, T>([&](int i) { return p + i * stride; });
}
template <typename T, int W>
TILE_INLINE void store_strided(T* p, int64_t stride, vec<compute_t<T>, W> a) {
  T buffer[W];
  store(buffer, a);
  for (int i = 0; i < W; ++i) p[i * stride] = buffer[i];
}
template <int W, typename T>
TILE_INLINE vec<compute_t<T>, W> load_strided_n(const T* p, int64_t stride, int64_t n) {
  if (n <= 0) return zero<compute_t<T>, W>();
  const vec<compute_t<T>, W> all = detail::load_each<W, T>([&](int i) { return p + (i < n ? i : 0) * stride; });
  return select(first_lanes<sizeof(compute_t<T>), W>(n), all, zero<compute_t<T>, W>());
}
template <typename T, int W>
TILE_INLINE void store_strided_n(T* p, int64_t stride, vec<compute_t<T>, W> a, int64_t n) {
  T buffer[W];
  store(buffer, a);
  for (int64_t i = 0; i < n && i < W; ++i) p[i * stride] = buffer[i];
}

// Loads p[index[i]] for each lane i. gather_n() accesses only the first n lanes.
template <typename T, typename I, int W>
TILE_INLINE vec<compute_t<T>, W> gather(const T* p, vec<I, W> index) {
  return detail::load_each<W, T>([&](int i) { return p + index[i]; });
}
template <typename T, typename I, int W>
TILE_INLINE vec<compute_t<T>, W> gather_n(const T* p, vec<I, W> index, int64_t n) {
  T buffer[W] = {};
  for (int i = 0; i < W && i < n; ++i) buffer[i] = p[index[i]];
  return load<W>(buffer);
}

}  // namespace heddle::tile
