// Running results of generated reductions: accumulators in registers for rows, and arg-reductions.
#pragma once

#include "tile/op/combine.h"
#include "tile/op/lanes.h"

namespace heddle::tile {

// Reduces the lanes of a vector pairwise.
template <typename C, typename T, int W>
TILE_INLINE T across(vec<T, W> a) {
  if constexpr (W == 1) {
    return a.v;
  } else {
    return across<C>(C::apply(low_half(a), high_half(a)));
  }
}

// One result for a row, accumulated in U independent registers, so that operations on consecutive vectors overlap.
template <typename C, typename T, int W, int U>
struct accumulator {
  vec<T, W> part[U];

  TILE_INLINE accumulator() {
    static_for<U>([&](auto u) __attribute__((always_inline)) { part[u] = splat<W>(C::template identity<T>()); });
  }
  template <int I>
  TILE_INLINE void add(vec<T, W> v, index_constant<W>, index_constant<I>) {
    part[I] = C::apply(part[I], v);
  }
  TILE_INLINE void add(vec<T, W> v, int64_t n, index_constant<0>) {
    part[0] = C::apply(part[0], select(first_lanes<sizeof(T), W>(n), v, splat<W>(C::template identity<T>())));
  }
  TILE_INLINE vec<T, 1> result() const {
    vec<T, W> r = part[0];
    static_for<U>([&](auto u) __attribute__((always_inline)) {
      if constexpr (decltype(u)::value > 0) r = C::apply(r, part[u]);
    });
    return {across<C>(r)};
  }
};

// Computes sum += v and keeps the rounding error in `error` (Kahan 1965). The error of the sum stays at about one
// rounding, whatever the number of terms.
template <typename T, int W>
TILE_INLINE void add_compensated(vec<T, W>& sum, vec<T, W>& error, vec<T, W> v) {
  const vec<T, W> term = v - error, after = sum + term;
  // After an overflow, the difference is NaN. The sum must stay infinite, so the error becomes 0.
  const vec<T, W> lost = (after - sum) - term;
  sum = after;
  error = select(lost == lost, lost, zero<T, W>());
}

// The sum of a long row. The accumulator's registers are added to a compensated sum at regular intervals.
template <typename T, int W, int U>
struct long_sum : accumulator<sum_of, T, W, U> {
  vec<T, W> total = zero<T, W>(), error = zero<T, W>();
  int64_t pending = 0;

  // Must be called after at most `additions` terms were added to each register since the last call.
  TILE_INLINE void settle(int64_t additions) {
    pending += additions;
    if (pending >= kLongSum) fold();
  }
  TILE_INLINE vec<T, 1> result() { return {reduce_add(lanes())}; }
  TILE_INLINE vec<T, W> lanes() {
    fold();
    return total;
  }

 private:
  TILE_INLINE void fold() {
    vec<T, W> sum = this->part[0];
    static_for<U>([&](auto u) __attribute__((always_inline)) {
      if constexpr (decltype(u)::value > 0) sum = sum + this->part[u];
      this->part[u] = zero<T, W>();
    });
    add_compensated(total, error, sum);
    pending = 0;
  }
};

// The running sum of a long row. It can be read after every term.
template <typename T>
struct running_sum {
  vec<T, 1> part = zero<T, 1>(), total = zero<T, 1>(), error = zero<T, 1>();
  int64_t pending = 0;

  TILE_INLINE void add(vec<T, 1> v, index_constant<1>, index_constant<0>) {
    part = part + v;
    if (++pending < kLongSum) return;
    add_compensated(total, error, part);
    part = zero<T, 1>();
    pending = 0;
  }
  TILE_INLINE vec<T, 1> result() const { return total + part; }
};

// Sets n running results in memory to the identity.
template <typename C, typename T>
TILE_INLINE void reset(T* p, int64_t n) {
  for_lanes<kLanes>(
      0, n, [&]<int W>(int64_t i, auto k) __attribute__((always_inline)) {
        put(p + i, splat<W>(C::template identity<T>()), k);
      });
}

// Compensated addition to n lanes of sums in memory.
template <typename T, int W, typename N>
TILE_INLINE void add_compensated(T* sum, T* error, vec<T, W> v, N n) {
  vec<T, W> total = fetch<W>(sum, n), rest = fetch<W>(error, n);
  add_compensated(total, rest, v);
  put(sum, total, n);
  put(error, rest, n);
}

// The combiner of positions. Its identity, -1, means that there is no position yet.
struct none_of {
  template <typename T>
  TILE_INLINE static constexpr T identity() {
    return T(-1);
  }
};

// True if candidate `a` replaces the current best `b`. NaN beats every number. Among equal candidates, the first wins,
// or the last if `Last`.
template <bool Max, bool Last, typename T, int W>
TILE_INLINE auto beats(vec<T, W> a, vec<T, W> b) {
  auto better = Max ? (Last ? a >= b : a > b) : (Last ? a <= b : a < b);
  if constexpr (is_float<T>) {
    const auto nan = is_nan(a);
    better = (better & ~is_nan(b)) | (Last ? nan : nan & ~is_nan(b));
  }
  return better;
}

// The position of the best value of a row. Each lane keeps its own best value. Ties between lanes are decided by
// position.
template <bool Max, bool Last, typename T, typename P, int W>
struct arg_accumulator {
  vec<T, W> best;
  vec<P, W> where;

  TILE_INLINE arg_accumulator() : best{}, where(splat<W>(P(-1))) {}
  template <typename N>
  TILE_INLINE void add(vec<T, W> v, vec<P, W> position, N n) {
    constexpr int bytes = int(sizeof(P));
    auto take = convert_mask<bytes>(beats<Max, Last>(v, best)) | (where < zero<P, W>());
    if constexpr (is_same<N, int64_t>) take = take & first_lanes<bytes, W>(n);
    best = select(take, v, best);
    where = select(take, position, where);
  }
  TILE_INLINE vec<int64_t, 1> result() const {
    vec<T, 1> b{};
    int64_t at = -1;
    for (int i = 0; i < W; ++i) {
      if (where[i] < 0) continue;
      const vec<T, 1> v{best[i]};
      // If neither value beats the other, they are equal (or both NaN), and the position decides.
      const bool forward = any(beats<Max, false>(v, b)), backward = any(beats<Max, false>(b, v));
      const bool equal = !forward && !backward && (Last ? where[i] > at : where[i] < at);
      if (at < 0 || forward || equal) {
        b = v;
        at = where[i];
      }
    }
    return {at};
  }
};

// Updates the best values in `best` and their positions in `where`; both are arrays in memory. Each lane has an
// independent result.
template <bool Max, bool Last, int W, typename T, typename N>
TILE_INLINE void arg_columns(T* best, int64_t* where, vec<T, W> v, vec<int64_t, W> position, N n) {
  arg_accumulator<Max, Last, T, int64_t, W> a;
  a.best = fetch<W>(best, n);
  a.where = fetch<W>(where, n);
  a.add(v, position, n);
  put(best, a.best, n);
  put(where, a.where, n);
}

}  // namespace heddle::tile
