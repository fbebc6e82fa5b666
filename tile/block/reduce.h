// Reductions and scans along one dimension of tiles: registers of a thread first, then lanes by shuffles, then warps
// through shared memory. Results are the same in all threads that have them, and from run to run.
//
// A combination is a functor f(a, b) on elements, associative; for several operands elements are tuples. Reductions
// take elements in any order. A functor that has `commutative` says that exchanging a and b changes no bit of the
// result.
#pragma once

#include "tile/block/convert.h"

namespace heddle::tile::block {

namespace detail {

template <typename T, typename F>
TILE_INLINE T each_word(T x, F f) {
  constexpr int kWords = (int(sizeof(T)) + 3) / 4;
  uint32_t words[kWords] = {};
  TILE_COPY_BYTES(words, &x, sizeof(T));
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = f(words[i]);
  TILE_COPY_BYTES(&x, words, sizeof(T));
  return x;
}
template <typename T>
TILE_INLINE T shuffle_xor(const T& x, int by) {
  return each_word(x, [&](uint32_t w) { return __shfl_xor_sync(0xffffffffu, w, by); });
}
template <typename T>
TILE_INLINE T shuffle(const T& x, int from) {
  return each_word(x, [&](uint32_t w) { return __shfl_sync(0xffffffffu, w, from); });
}

template <typename F>
TILE_HD constexpr bool commutes() {
  if constexpr (requires { F::commutative; }) {
    return F::commutative;
  } else {
    return false;
  }
}

// An element that may be missing, for tiles whose layout reaches beyond their shape.
template <typename T>
struct maybe {
  T value;
  bool there;
};
template <typename F>
struct combine_maybe {
  F f;
  static constexpr bool commutative = commutes<F>();
  template <typename T>
  TILE_INLINE maybe<T> operator()(const maybe<T>& a, const maybe<T>& b) const {
    if (!b.there) return a;
    if (!a.there) return b;
    return {f(a.value, b.value), true};
  }
};

// Over `size` lanes that are `below` apart. The first of them gets the result, and where f commutes all of them.
template <typename F, typename T>
TILE_INLINE T reduce_lanes(const F& f, T x, int size, int below) {
#pragma unroll
  for (int by = 1; by < size; by *= 2) x = f(x, shuffle_xor(x, by * below));
  return x;
}

// Over `size` warps that are `below` apart, of each what lane `from_lane` has.
template <int N, int Threads, typename F, typename T>
TILE_INLINE void reduce_warps(const F& f, T (&x)[N], T* shared, int size, int below, int from_lane) {
  const int warp = int(threadIdx.x) / 32, first = warp - warp / below % size * below;
#pragma unroll
  for (int i = 0; i < N; ++i) shared[i * Threads + int(threadIdx.x)] = x[i];
  sync();
  const int from = first * 32 + from_lane;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    x[i] = shared[i * Threads + from];
    for (int k = 1; k < size; ++k) x[i] = f(x[i], shared[i * Threads + from + k * below * 32]);
  }
}

// Shared memory for a part of an operation; `again`: another part has used it.
template <typename T, typename S>
TILE_INLINE T* begin_again(S shared, bool again) {
  if (!again) return shared.template begin<T>();
  sync();
  return reinterpret_cast<T*>(shared.memory());
}

// Whether a reduction along Axis goes through shared memory.
template <typename L, int Axis>
TILE_HD constexpr bool crosses_warps() {
  for (int w = 0; w < L::kWarps; ++w) {
    if (L::of_warp(w, Axis) != 0) return true;
  }
  return false;
}

// One tile of any elements; T has what f combines.
template <int Axis, typename F, typename T, typename L, typename S>
TILE_INLINE auto reduce_elements(S shared, const F& f, const Tile<T, L>& x) {
  using To = slice_t<L, Axis>;
  Tile<T, To> y;
  // Registers: a digit of another dimension at a time, the first of a group begins.
#pragma unroll
  for (int r = 0; r < L::kRegisters; ++r) {
    const int to = L::template reduced<Axis>(r);
    y.v[to] = L::of_register(r, Axis) == 0 ? x.v[r] : f(y.v[to], x.v[r]);
  }
  // Lanes that have combined the same in another order may differ where f does not commute: what one lane has counts.
  const int lane = int(threadIdx.x) % 32;
  int from = lane;
  L::template each_digit<Part::kLane, Axis>([&](auto d, int below) {
    each_register<To::kRegisters>([&](int r) { y.v[r] = reduce_lanes(f, y.v[r], d.size, below); });
    if constexpr (!commutes<F>()) from -= lane / below % d.size * below;
  });
  if constexpr (!commutes<F>() && !crosses_warps<L, Axis>()) {
    each_register<To::kRegisters>([&](int r) { y.v[r] = shuffle(y.v[r], from); });
  }
  bool again = false;
  L::template each_digit<Part::kWarp, Axis>([&](auto d, int below) {
    reduce_warps<To::kRegisters, L::kThreads>(f, y.v, begin_again<T>(shared, again), d.size, below, from);
    again = true;
  });
  return y;
}

template <typename X>
TILE_INLINE auto zip(const X& x) {
  return x;
}
template <typename... X>
requires(sizeof...(X) > 1) TILE_INLINE auto zip(const X&... x) {
  return map([](const auto&... e) { return make_tuple(e...); }, x...);
}

// The elements with word of which exist.
template <typename T, typename L>
TILE_INLINE Tile<maybe<T>, L> with_presence(const Tile<T, L>& x, int dim) {
  const Place here = L::here();
  Tile<maybe<T>, L> y;
  each_register<L::kRegisters>([&](int r) { y.v[r] = {x.v[r], L::inside(here, r, dim)}; });
  return y;
}
template <typename T, typename L>
TILE_INLINE auto values_of(const Tile<maybe<T>, L>& x) {
  return map([](const maybe<T>& m) { return m.value; }, x);
}
// A tile of rank 0 is a scalar.
template <typename T, typename L>
TILE_INLINE auto or_scalar(const Tile<T, L>& x) {
  if constexpr (L::kRank == 0) {
    return x.v[0];
  } else {
    return x;
  }
}

}  // namespace detail

// Bytes of shared memory that reduce() or scan() of elements of T needs.
template <typename T, typename L, int Axis>
constexpr int reduce_bytes() {
  if (!detail::crosses_warps<L, Axis>()) return 0;
  constexpr int kEach = L::fits(Axis) ? int(sizeof(T)) : int(sizeof(detail::maybe<T>));
  return slice_t<L, Axis>::kRegisters * L::kThreads * kEach;
}

// Combines the elements along Axis: a tile of slice_t of the layout, a scalar where no dimension is left. Of several
// tiles a tile of tuples.
template <int Axis, typename S, typename F, typename... X>
TILE_INLINE auto reduce(S shared, const F& f, const X&... x) {
  const auto all = detail::zip(x...);
  using L = typename decltype(all)::layout;
  if constexpr (L::fits(Axis)) {
    return detail::or_scalar(detail::reduce_elements<Axis>(shared, f, all));
  } else {
    const auto y = detail::reduce_elements<Axis>(shared, detail::combine_maybe<F>{f}, detail::with_presence(all, Axis));
    return detail::or_scalar(detail::values_of(y));
  }
}

namespace detail {

// What comes before element i of `size` totals: the combination of those below, and of all; of the lanes that are
// `below` apart. `index` is this thread's, reversed where the scan is.
template <bool Reverse, typename F, typename T>
TILE_INLINE void scan_lanes(const F& f, T& before, T& total, int size, int below) {
  const int lane = int(threadIdx.x) % 32, digit = lane / below % size, i = Reverse ? size - 1 - digit : digit;
  const int step = Reverse ? -below : below, last = lane + (size - 1 - i) * step;
  T sum = total;
#pragma unroll
  for (int by = 1; by < size; by *= 2) {
    const T other = shuffle(sum, i >= by ? lane - by * step : lane);
    if (i >= by) sum = f(other, sum);
  }
  before = shuffle(sum, i > 0 ? lane - step : lane);
  total = shuffle(sum, last);
}

// The same of warps, for the registers that `mine` names.
template <int N, bool Reverse, int Threads, typename F, typename T, typename Mine>
TILE_INLINE void scan_warps(const F& f, T (&before)[N], T (&total)[N], T* shared, int size, int below, Mine mine) {
  const int warp = int(threadIdx.x) / 32, digit = warp / below % size;
  const int first = (warp - digit * below) * 32 + int(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (mine(i)) shared[i * Threads + int(threadIdx.x)] = total[i];
  }
  sync();
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (!mine(i)) continue;
    T sum = shared[i * Threads + first + (Reverse ? size - 1 : 0) * below * 32];
    before[i] = sum;
    for (int k = 1; k < size; ++k) {
      const int at = Reverse ? size - 1 - k : k;
      if (at == digit) before[i] = sum;
      sum = f(sum, shared[i * Threads + first + at * below * 32]);
    }
    total[i] = sum;
  }
}

// f(digit, below) for the digits along Axis from the smallest stride on.
template <typename L, int Axis, int Stride = 1, typename F>
TILE_INLINE void each_digit_in_order(F f) {
  constexpr int kNext = L::template next_stride<Axis>(Stride);
  if constexpr (kNext > Stride) {
    const auto this_one = [&](auto d, int below) {
      if constexpr (d.stride == Stride) f(d, below);
    };
    L::template each_digit<Part::kRegister, Axis>(this_one);
    L::template each_digit<Part::kLane, Axis>(this_one);
    L::template each_digit<Part::kWarp, Axis>(this_one);
    each_digit_in_order<L, Axis, kNext>(f);
  }
}

template <int Axis, bool Reverse, typename F, typename T, typename L, typename S>
TILE_INLINE Tile<T, L> scan_elements(S shared, const F& f, const Tile<T, L>& x) {
  constexpr int N = L::kRegisters;
  Tile<T, L> y = x;
  // Of each register the combination of all elements that the digits so far reach, first of itself. Registers that
  // differ in these digits only have the same one.
  T total[N];
  each_register<N>([&](int r) { total[r] = x.v[r]; });
  [[maybe_unused]] bool again = false;
  each_digit_in_order<L, Axis>([&](auto d, int below) {
    using D = decltype(d);
    if constexpr (D::part == Part::kRegister) {
#pragma unroll
      for (int r = 0; r < N; ++r) {
        if (r / below % D::size != 0) continue;
        // Registers r + k * below, in order; each stands for one block of what the digits so far reach.
        T sum = total[r + (Reverse ? (D::size - 1) * below : 0)];
#pragma unroll
        for (int k = 1; k < D::size; ++k) {
          const int at = r + (Reverse ? D::size - 1 - k : k) * below;
          y.v[at] = f(sum, y.v[at]);
          sum = f(sum, total[at]);
        }
#pragma unroll
        for (int k = 0; k < D::size; ++k) total[r + k * below] = sum;
      }
    } else {
      // Registers that differ below this digit have the same totals: one of them is combined.
      const auto base = [](int r) { return L::template rounded<Axis>(r, D::stride); };
      T before[N];
      int digit = 0;
      if constexpr (D::part == Part::kLane) {
        digit = int(threadIdx.x) % 32 / below % D::size;
#pragma unroll
        for (int r = 0; r < N; ++r) {
          if (base(r) == r) scan_lanes<Reverse>(f, before[r], total[r], D::size, below);
        }
      } else {
        digit = int(threadIdx.x) / 32 / below % D::size;
        scan_warps<N, Reverse, L::kThreads>(f, before, total, begin_again<T>(shared, again), D::size, below,
                                            [&](int r) { return base(r) == r; });
        again = true;
      }
#pragma unroll
      for (int r = 0; r < N; ++r) {
        if (digit != (Reverse ? D::size - 1 : 0)) y.v[r] = f(before[base(r)], y.v[r]);
        total[r] = total[base(r)];
      }
    }
  });
  return y;
}

}  // namespace detail

template <typename T, typename L, int Axis>
constexpr int scan_bytes() {
  if (!detail::crosses_warps<L, Axis>()) return 0;
  return L::kRegisters * L::kThreads * (L::fits(Axis) ? int(sizeof(T)) : int(sizeof(detail::maybe<T>)));
}

// Element i along Axis becomes the combination of elements 0 to i, with Reverse of i to the last.
template <int Axis, bool Reverse = false, typename S, typename F, typename... X>
TILE_INLINE auto scan(S shared, const F& f, const X&... x) {
  const auto all = detail::zip(x...);
  using L = typename decltype(all)::layout;
  if constexpr (L::fits(Axis)) {
    return detail::scan_elements<Axis, Reverse>(shared, f, all);
  } else {
    const auto some = detail::with_presence(all, Axis);
    return detail::values_of(detail::scan_elements<Axis, Reverse>(shared, detail::combine_maybe<F>{f}, some));
  }
}

}  // namespace heddle::tile::block
