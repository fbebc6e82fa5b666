// The mean and the sum of squared deviations of many values, in one pass.
#pragma once

#include "tile/arch/sm80/approx.h"
#include "tile/op/cuda/team.h"

namespace heddle::tile {

// The moments of `n` values: their mean, and the sum of their squared deviations from the mean.
template <typename T>
struct moment {
  T n, mean, squares;
};

// Combines the moments of two sets of values (Chan, Golub, LeVeque 1979).
struct moments_of {
  template <typename M>
  TILE_INLINE static constexpr M identity() {
    return {0, 0, 0};
  }
  template <typename T>
  TILE_INLINE static moment<T> apply(moment<T> a, moment<T> b) {
    // If the two means are equal, the result is exactly their value, even if one set is empty.
    const T n = a.n + b.n, share = a.n > T(0) ? b.n * cuda::reciprocal_approx(n) : T(1), d = b.mean - a.mean;
    return {n, a.mean + d * share, a.squares + b.squares + d * d * (a.n * share)};
  }
  // Combines the moments of `Lanes` neighbouring lanes. If all threads of a warp have equally many values, no division
  // is needed and the counts are not exchanged.
  template <int Lanes, typename T>
  TILE_INLINE static moment<T> over_lanes(moment<T> x) {
    if (__all_sync(all_lanes, x.n == shuffle(x.n, 0))) {
#pragma unroll
      for (int by = Lanes / 2; by > 0; by /= 2) {
        const T mean = shuffle_xor(x.mean, by), squares = shuffle_xor(x.squares, by), d = mean - x.mean;
        x = {x.n + x.n, T(0.5) * (x.mean + mean), x.squares + squares + d * d * (T(0.5) * x.n)};
      }
    } else {
#pragma unroll
      for (int by = Lanes / 2; by > 0; by /= 2) x = apply(x, shuffle_xor(x, by));
    }
    return x;
  }
};

// Moments as three sums over the values. `sum`: the sum of the values. `drift`: the sum of their differences from sum /
// n, which is not exactly the mean because of rounding. `squares`: the sum of the squares of these differences.
template <typename T>
struct moment_sums {
  T sum, drift, squares;
  TILE_INLINE explicit moment_sums(moment<T> m) : moment_sums(m, m.n) {}
  TILE_INLINE moment_sums(moment<T> m, T n) : sum(m.mean * n) {
    const T off = m.mean - (n > T(0) ? sum / n : T(0));
    drift = off * n;
    squares = m.squares + off * drift;
  }
};
template <typename T>
TILE_INLINE void split_moments(moment<T> m, vec<T, 1>& sum, vec<T, 1>& squares) {
  sum.v = m.mean * m.n;
  squares.v = m.squares;
}
// Splits the moments of N values into the three sums of moment_sums.
template <int64_t N, typename T>
TILE_INLINE void split_moments(moment<T> m, vec<T, 1>& sum, vec<T, 1>& drift, vec<T, 1>& squares) {
  const moment_sums<T> s(m, T(N));
  sum.v = s.sum, drift.v = s.drift, squares.v = s.squares;
}

// The moments of a thread's columns, with the interface that reductions of columns (team.h) expect.
template <typename T, int W>
struct column_moments {
  static constexpr int width = W;
  moment<T> part[W];
  TILE_INLINE vec<T, W> sums() const {
    vec<T, W> r;
    each_lane<W>([&](int i) { r.set(i, part[i].mean * part[i].n); });
    return r;
  }
  TILE_INLINE vec<T, W> squares() const {
    vec<T, W> r;
    each_lane<W>([&](int i) { r.set(i, part[i].squares); });
    return r;
  }
  TILE_INLINE vec<T, W> drifts() const {
    vec<T, W> r;
    each_lane<W>([&](int i) { r.set(i, moment_sums<T>(part[i]).drift); });
    return r;
  }
  TILE_INLINE vec<T, W> drifting_squares() const {
    vec<T, W> r;
    each_lane<W>([&](int i) { r.set(i, moment_sums<T>(part[i]).squares); });
    return r;
  }
};

// The moments of one column, for threads that have only one column.
template <typename T>
struct single_column<moment<T>> {
  static constexpr int width = 1;
  moment<T> part[1];
  TILE_INLINE vec<T, 1> sums() const { return {part[0].mean * part[0].n}; }
  TILE_INLINE vec<T, 1> squares() const { return {part[0].squares}; }
  TILE_INLINE vec<T, 1> drifts() const { return {moment_sums<T>(part[0]).drift}; }
  TILE_INLINE vec<T, 1> drifting_squares() const { return {moment_sums<T>(part[0]).squares}; }
};

// The moments of a thread's values, separately for each lane. To avoid cancellation, the accumulator adds the values'
// differences from the thread's first value. The square of the difference between this value and the mean is at most
// the sum of squared deviations. So with n values, the relative error of that sum is at most n units in the last place.
template <typename T, int W>
struct moments_accumulator {
  static constexpr int width = W;
  T n = T(0);
  vec<T, W> first = zero<T, W>(), sum = zero<T, W>(), squares = zero<T, W>();

  TILE_INLINE void add(vec<T, W> v) {
    if (n == T(0)) first = v;
    n += T(1);
    const vec<T, W> d = v - first;
    sum = sum + d;
    squares = fma(d, d, squares);
  }
  TILE_INLINE column_moments<T, W> columns() const {
    column_moments<T, W> r;
    const T share = n > T(0) ? cuda::reciprocal_approx(n) : T(0);
    each_lane<W>([&](int i) {
      const T mean = sum[i] * share, rest = squares[i] - sum[i] * mean;
      r.part[i] = {n, first[i] + mean, rest > T(0) || rest != rest ? rest : T(0)};
    });
    return r;
  }
  TILE_INLINE moment<T> row() const {
    const column_moments<T, W> r = columns();
    vec<T, W> means;
    each_lane<W>([&](int i) { means.set(i, r.part[i].mean); });
    const T mean = across<sum_of>(means) * (T(1) / W);
    T all = T(0);
    each_lane<W>([&](int i) {
      const T d = r.part[i].mean - mean;
      all += r.part[i].squares + n * d * d;
    });
    return {n * W, mean, all};
  }
};

}  // namespace heddle::tile
