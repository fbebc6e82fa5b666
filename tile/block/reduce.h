// Reductions and scans along one dimension of tiles. They first combine the registers of a thread, then lanes by
// shuffles, then warps through shared memory. The results are identical in all threads that hold them, and in every
// run.
//
// A combination is an associative functor f(a, b) on elements. If there are several operands, elements are tuples.
// Reductions may combine the elements in any order. If a functor has the member `commutative`, exchanging a and b does
// not change any bit of the result.
#pragma once

#include "tile/block/convert.h"
#include "tile/op/cuda/shuffle.h"

namespace heddle::tile::block {

namespace detail {

template <typename F>
TILE_HD constexpr bool commutes() {
  if constexpr (requires { F::commutative; }) {
    return F::commutative;
  } else {
    return false;
  }
}

// An element and whether it exists. Used for tiles whose layout exceeds their shape.
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

// Reduces over `size` lanes whose indices are `below` apart. The first of these lanes gets the result; if f commutes,
// all of them do.
template <typename F, typename T>
TILE_INLINE T reduce_lanes(const F& f, T x, int size, int below) {
#pragma unroll
  for (int by = 1; by < size; by *= 2) x = f(x, shuffle_xor(x, by * below));
  return x;
}

// Reduces over `size` warps whose indices are `below` apart. Uses the value of lane `from_lane` of each warp.
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

// Returns the shared memory for one part of an operation. `again`: an earlier part of the operation has used the
// memory, so all threads first wait at a barrier.
template <typename T, typename S>
TILE_INLINE T* begin_again(S shared, bool again) {
  if (!again) return shared.template begin<T>();
  sync();
  return reinterpret_cast<T*>(shared.memory());
}

// True if a reduction along Axis uses shared memory.
template <typename L, int Axis>
TILE_HD constexpr bool crosses_warps() {
  for (int w = 0; w < L::kWarps; ++w) {
    if (L::of_warp(w, Axis) != 0) return true;
  }
  return false;
}

// Reduces one tile with elements of any type. T is the type that f combines.
template <int Axis, typename F, typename T, typename L, typename S>
TILE_INLINE auto reduce_elements(S shared, const F& f, const Tile<T, L>& x) {
  using To = slice_t<L, Axis>;
  Tile<T, To> y;
  // First registers: each register is combined into the result's register with the same position in the other
  // dimensions. The first register of each group initializes that result.
#pragma unroll
  for (int r = 0; r < L::kRegisters; ++r) {
    const int to = L::template reduced<Axis>(r);
    y.v[to] = L::of_register(r, Axis) == 0 ? x.v[r] : f(y.v[to], x.v[r]);
  }
  // If f does not commute, lanes that combined the same elements in different orders may have different values. Then
  // the value of one lane is used.
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

// Pairs each element with a flag that tells whether the element exists.
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
// Converts a tile of rank 0 to a scalar.
template <typename T, typename L>
TILE_INLINE auto or_scalar(const Tile<T, L>& x) {
  if constexpr (L::kRank == 0) {
    return x.v[0];
  } else {
    return x;
  }
}

}  // namespace detail

// The bytes of shared memory that reduce() or scan() needs for elements of type T.
template <typename T, typename L, int Axis>
constexpr int reduce_bytes() {
  if (!detail::crosses_warps<L, Axis>()) return 0;
  constexpr int kEach = L::fits(Axis) ? int(sizeof(T)) : int(sizeof(detail::maybe<T>));
  return slice_t<L, Axis>::kRegisters * L::kThreads * kEach;
}

// Combines the elements along Axis. Returns a tile with the layout slice_t, or a scalar if no dimension is left.
// Several input tiles give a tile of tuples.
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

// Scans the totals of `size` lanes whose indices are `below` apart. Sets `before` to the combination of the totals of
// all preceding lanes, and `total` to the combination of the totals of all lanes.
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

// As scan_lanes(), for warps. Processes only the registers i for which mine(i) is true.
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

// Calls f(digit, below) for the digits of the layout along Axis, in order of increasing stride.
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
  // For each register: the combination of all elements that differ from it only in the digits processed so far;
  // initially the register's own element. Registers that differ only in these digits have the same total.
  T total[N];
  each_register<N>([&](int r) { total[r] = x.v[r]; });
  [[maybe_unused]] bool again = false;
  each_digit_in_order<L, Axis>([&](auto d, int below) {
    using D = decltype(d);
    if constexpr (D::part == Part::kRegister) {
#pragma unroll
      for (int r = 0; r < N; ++r) {
        if (r / below % D::size != 0) continue;
        // Combines the registers r + k * below in order. Each of them holds the total of one block of elements.
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
      // Registers that differ only in digits below this one have the same totals, so only one of them is combined.
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

// Inclusive scan: element i along Axis becomes the combination of elements 0 to i. With Reverse, it becomes the
// combination of elements i to the last.
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
