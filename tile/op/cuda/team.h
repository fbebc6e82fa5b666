// Cooperation of threads: barriers, reductions and scans of a thread group ("team"). A team is a thread, a power-of-two
// part of a warp, a warp, or a whole block. Every thread of a warp that contains part of a team must take part in each
// call. Results are equal on all threads and in every run, because the order of combination is fixed.
#pragma once

#include "tile/op/combine.h"
#include "tile/op/cuda/shuffle.h"

namespace heddle::tile {

// Combines the lanes of a vector, pairwise.
template <typename C, typename T, int W>
TILE_INLINE T across(vec<T, W> a) {
#pragma unroll
  for (int half = W / 2; half > 0; half /= 2) {
#pragma unroll
    for (int i = 0; i < half; ++i) a.set(i, C::apply(a[i], a[i + half]));
  }
  return a[0];
}

// ---- Accumulators of a thread

template <typename C, typename T, int W>
struct accumulator {
  static constexpr int width = W;
  vec<T, W> part = splat<W>(C::template identity<T>());
  TILE_INLINE void add(vec<T, W> v) { part = C::apply(part, v); }
  TILE_INLINE vec<T, W> columns() const { return part; }
  TILE_INLINE T row() const { return across<C>(part); }
};

// A sum of many terms, with compensation of rounding errors (Kahan 1965).
template <typename T, int W>
struct compensated_sum {
  static constexpr int width = W;
  vec<T, W> part = zero<T, W>(), lost = zero<T, W>();
  TILE_INLINE void add(vec<T, W> v) {
    each_lane<W>([&](int i) {
      const T term = v[i] - lost[i], after = part[i] + term;
      // If the sum has overflowed, the difference is NaN. Ignore it so that the infinity remains.
      const T rest = (after - part[i]) - term;
      part.set(i, after);
      lost.set(i, rest == rest ? rest : T(0));
    });
  }
  TILE_INLINE vec<T, W> columns() const { return part; }
  TILE_INLINE T row() const { return across<sum_of>(part); }
};

// element_of() returns element i of an accumulator, and set_element() replaces it. An element is a number or, for
// example, a best<>.
template <typename A>
TILE_INLINE auto element_of(const A& a, int i) {
  return a.part[i];
}
template <typename A, typename E>
TILE_INLINE void set_element(A& a, int i, E value) {
  if constexpr (requires { a.part.set(i, value); }) {
    a.part.set(i, value);
  } else {
    a.part[i] = value;
  }
}

// The best value so far and its position. NaN is better than any number. Among equal values the first one wins, or with
// `Last` the last one. `where` < 0: there is no value yet.
template <bool Max, bool Last, typename T, typename P>
struct best {
  T value;
  P where;
  TILE_INLINE static bool better(T a, T b) {
    // Comparisons with NaN are always false.
    if constexpr (is_float<T>) return !(Max ? a <= b : a >= b) && b == b;
    return Max ? a > b : a < b;
  }
  // Adds a value whose position is after all previous positions.
  TILE_INLINE void meet(T v, P at) {
    const bool taken = where < 0 || (Last ? !better(value, v) : better(v, value));
    value = taken ? v : value;
    where = taken ? at : where;
  }
  TILE_INLINE best with(best other) const {
    if (other.where < 0) return *this;
    if (where < 0) return other;
    const bool forward = better(other.value, value), backward = better(value, other.value);
    const bool later = Last ? other.where > where : other.where < where;
    return forward || (!backward && later) ? other : *this;
  }
};
template <bool Max, bool Last, typename T, typename P, int W>
struct arg_accumulator {
  static constexpr int width = W;
  using Best = best<Max, Last, T, P>;
  Best part[W];
  TILE_INLINE arg_accumulator() {
    each_lane<W>([&](int i) { part[i] = {T(0), P(-1)}; });
  }
  TILE_INLINE void add(vec<T, W> v, vec<P, W> position) {
    each_lane<W>([&](int i) { part[i].meet(v[i], position[i]); });
  }
  TILE_INLINE vec<int64_t, W> columns() const {
    vec<int64_t, W> r;
    each_lane<W>([&](int i) { r.set(i, part[i].where); });
    return r;
  }
  TILE_INLINE Best row() const {
    Best r = part[0];
    each_lane<W>([&](int i) {
      if (i > 0) r = r.with(part[i]);
    });
    return r;
  }
};

struct best_of {
  template <typename B>
  TILE_INLINE static constexpr B identity() {
    return {0, -1};
  }
  template <typename B>
  TILE_INLINE static B apply(B a, B b) {
    return a.with(b);
  }
};

// ---- Teams. `Threads` is the number of threads of a team.

template <int Threads>
TILE_INLINE void team_sync() {
  if constexpr (Threads > warp_lanes) {
    __syncthreads();
  } else if constexpr (Threads > 1) {
    __syncwarp();
  }
}

// Combines the values of `Lanes` neighbouring threads of a warp.
template <typename C, int Lanes, typename T>
TILE_INLINE T lanes_reduce(T x) {
  if constexpr (requires { C::template over_lanes<Lanes>(x); }) {
    return C::template over_lanes<Lanes>(x);
  } else {
#pragma unroll
    for (int by = Lanes / 2; by > 0; by /= 2) x = C::apply(x, shuffle_xor(x, by));
    return x;
  }
}

TILE_HD constexpr int log2_of(int n) {
  int p = 0;
  while (1 << p < n) ++p;
  return p;
}
TILE_HD constexpr int power_of_two_from(int n) {
  int p = 1;
  while (p < n) p *= 2;
  return p;
}

// Combines the values of all threads of a team. If the team is a block, `shared` has room for one T per warp; it may be
// reused after the next barrier.
template <typename C, int Threads, typename T>
TILE_INLINE T team_reduce(T x, [[maybe_unused]] T* shared) {
  if constexpr (Threads <= warp_lanes) {
    return lanes_reduce<C, Threads>(x);
  } else {
    constexpr int warps = Threads / warp_lanes, rounded = power_of_two_from(warps);
    x = lanes_reduce<C, warp_lanes>(x);
    if (threadIdx.x % warp_lanes == 0) shared[threadIdx.x / warp_lanes] = x;
    __syncthreads();
    const int other = threadIdx.x % rounded;
    if constexpr (rounded == warps) {
      x = shared[other];
    } else {
      x = other < warps ? shared[other] : C::template identity<T>();
    }
    return lanes_reduce<C, rounded>(x);
  }
}

// Like team_reduce() above, with `shared` as bytes, aligned to 16. Teams within a warp do not need shared memory.
template <typename C, int Threads, typename T>
requires(!is_same<T, uint8_t>) TILE_INLINE T team_reduce(T x, uint8_t* shared) {
  return team_reduce<C, Threads>(x, reinterpret_cast<T*>(shared));
}
template <typename C, int Threads, typename T>
requires(Threads <= warp_lanes) TILE_INLINE T team_reduce(T x) {
  return team_reduce<C, Threads>(x, static_cast<T*>(nullptr));
}

namespace detail {

// The elements of an accumulator, as stored in shared memory.
template <typename A>
struct alignas(sizeof(element_of(A(), 0)) * A::width > 8 ? 16 : sizeof(element_of(A(), 0)) * A::width) column_vector {
  using Element = decltype(element_of(A(), 0));
  Element e[A::width];

  TILE_INLINE static column_vector of(const A& own) {
    column_vector v;
    each_lane<A::width>([&](int i) { v.e[i] = element_of(own, i); });
    return v;
  }
  TILE_INLINE void get(A& own) const {
    const column_vector v = *this;
    each_lane<A::width>([&](int i) { set_element(own, i, v.e[i]); });
  }
  template <typename C>
  TILE_INLINE void add(A& own) const {
    const column_vector v = *this;
    each_lane<A::width>([&](int i) { set_element(own, i, C::apply(element_of(own, i), v.e[i])); });
  }
};

}  // namespace detail

// Combines accumulators of columns over groups of rows. On entry, thread `lane` < Columns * Groups of the team holds
// column lane % Columns of group lane / Columns. On return, the threads of the first group hold the columns combined
// over all groups. `shared` belongs to the team, is 16-byte aligned, and may be reused after the next barrier.
template <typename C, int Team, int Columns, int Groups, typename A>
TILE_INLINE void columns_reduce(A& own, uint8_t* shared, int lane) {
  using Element = decltype(element_of(own, 0));
  constexpr int W = A::width;
  using Vector = detail::column_vector<A>;
  auto* all = reinterpret_cast<Vector*>(shared);
  // First combine threads of a warp that have the same column, with shuffles; then combine the warps.
  constexpr bool together =
      Team % warp_lanes == 0 && Columns * Groups == Team && Columns < warp_lanes && warp_lanes % Columns == 0;
  constexpr int Left = together ? Team / warp_lanes : Groups, Active = Columns * Left;
  if constexpr (together) {
#pragma unroll
    for (int by = Columns; by < warp_lanes; by *= 2) {
      each_lane<W>([&](int i) {
        const Element mine = element_of(own, i);
        set_element(own, i, C::apply(mine, shuffle_xor(mine, by)));
      });
    }
  }
  if constexpr (Left > 1) {
    // If there are many parts, combine them in two steps: first with several threads per column, then with one.
    constexpr int Parts = Left <= 16 ? Left : Left <= 64 ? 8 : 16;
    const int place = together ? lane / warp_lanes * Columns + lane % warp_lanes : lane;
    if (together ? lane % warp_lanes < Columns : lane < Active) all[place] = Vector::of(own);
    team_sync<Team>();
    if constexpr (Parts < Left) {
      if (lane < Columns * Parts) {
        if constexpr (together) all[lane].get(own);
#pragma unroll
        for (int g = Parts; g < Left; g += Parts) {
          if (g + Parts <= Left || lane < Columns * (Left - g)) all[g * Columns + lane].template add<C>(own);
        }
        if (lane >= Columns) all[lane] = Vector::of(own);
      }
      team_sync<Team>();
    }
    if (lane < Columns) {
#pragma unroll
      for (int g = 1; g < Parts; ++g) all[g * Columns + lane].template add<C>(own);
    }
  }
}

// A single result of a column, with the interface of an accumulator.
template <typename Element>
struct single_column {
  static constexpr int width = 1;
  Element part[1];
  TILE_INLINE auto columns() const {
    if constexpr (requires { part[0].where; }) {
      return vec<int64_t, 1>{part[0].where};
    } else {
      return vec<Element, 1>{part[0]};
    }
  }
};

// Like columns_reduce(), for a block of more than one warp, but spreads the results over the block's threads. Thread e
// < Columns * A::width returns lane e % A::width of column e / A::width. There must be at least as many threads as
// results. `shared` has room for the lanes of Columns * Groups threads.
template <typename C, int Team, int Columns, int Groups, typename A>
TILE_INLINE auto columns_apart(const A& own, uint8_t* shared, int lane) {
  using Element = decltype(element_of(own, 0));
  constexpr int W = A::width, All = Columns * W;
  static_assert(Team > warp_lanes && All <= Team);
  auto* all = reinterpret_cast<Element*>(shared);
  constexpr bool together =
      Team % warp_lanes == 0 && Columns * Groups == Team && Columns < warp_lanes && warp_lanes % Columns == 0;
  constexpr int Left = together ? Team / warp_lanes : Groups;
  if constexpr (together) {
    // Combine threads of a warp that have the same column. While threads hold several lanes, each pair of threads
    // divides the lanes: one keeps the lower half and the other the upper half.
    Element lanes[W];
    each_lane<W>([&](int i) { lanes[i] = element_of(own, i); });
    int first = 0;
    bool writes = true;
    constexpr int steps = log2_of(warp_lanes / Columns), halvings = steps < log2_of(W) ? steps : log2_of(W);
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      const int by = warp_lanes / 2 >> step, w = W >> (step < halvings ? step : halvings);
      const bool upper = (lane & by) != 0;
      if (step < halvings) {
#pragma unroll
        for (int i = 0; i < W / 2; ++i) {
          if (i >= w / 2) break;
          const Element kept = upper ? lanes[i + w / 2] : lanes[i], given = upper ? lanes[i] : lanes[i + w / 2];
          lanes[i] = C::apply(kept, shuffle_xor(given, by));
        }
        first += upper ? w / 2 : 0;
      } else {
        lanes[0] = C::apply(lanes[0], shuffle_xor(lanes[0], by));
        writes = writes && !upper;
      }
    }
    constexpr int w = W >> halvings;
    const int at = lane / warp_lanes * All + lane % Columns * W + first;
    if (writes) {
#pragma unroll
      for (int i = 0; i < w; ++i) all[at + i] = lanes[i];
    }
  } else if (lane < Columns * Groups) {
    each_lane<W>([&](int i) { all[lane * W + i] = element_of(own, i); });
  }
  __syncthreads();
  // If there are many parts, combine them in two steps: first with several threads per result, then with one.
  constexpr int most = Team / All, wanted = Left > 64 ? 16 : Left > 16 ? 8 : Left > 4 && sizeof(Element) > 8 ? 4 : 1;
  constexpr int Parts = most >= wanted ? wanted : 1;
  single_column<Element> r{};
  if (lane < All * Parts) {
    r.part[0] = all[lane];
#pragma unroll
    for (int g = Parts; g < Left; g += Parts) {
      if (g + Parts <= Left || lane < All * (Left - g)) r.part[0] = C::apply(r.part[0], all[g * All + lane]);
    }
  }
  if constexpr (Parts > 1) {
    if (lane >= All && lane < All * Parts) all[lane] = r.part[0];
    __syncthreads();
    if (lane < All) {
#pragma unroll
      for (int g = 1; g < Parts; ++g) r.part[0] = C::apply(r.part[0], all[g * All + lane]);
    }
  }
  return r;
}

// Combines vectors over the teams of a block, element by element. Every team holds `Columns` vectors; thread l of a
// team holds vectors l, l + Team, ... On return, thread t of the block has the combined vectors t, t + threads, ... in
// `result`.
template <typename C, int Teams, int Team, int Columns, int Own, typename A, int Steps, typename V>
TILE_INLINE void combine_teams(const A (&carried)[Steps], V (&result)[Own], uint8_t* shared, int team, int lane) {
  using T = typename V::element;
  constexpr int W = V::width;
  auto* all = reinterpret_cast<T*>(shared);
  __syncthreads();
#pragma unroll
  for (int k = 0; k < Steps; ++k) {
    const int q = k * Team + lane;
    if (q < Columns) store<W>(all + (team * Columns + q) * W, carried[k].columns());
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < Own; ++k) {
    const int q = k * Teams * Team + int(threadIdx.x);
    if (q >= Columns) continue;
    result[k] = load<W, W>(all + q * W);
    for (int t = 1; t < Teams; ++t) result[k] = C::apply(result[k], load<W, W>(all + (t * Columns + q) * W));
  }
}

// An exclusive scan: returns the combined values of the threads before this one in the team. `total` receives the
// combined values of the whole team. For a block, `shared` has room for one T per warp; a barrier is required before
// `shared` is used again.
template <typename C, int Threads, typename T>
TILE_INLINE T team_scan(T x, T& total, [[maybe_unused]] T* shared) {
  if constexpr (Threads == 1) {
    total = x;
    return C::template identity<T>();
  } else {
    constexpr int lanes = Threads < warp_lanes ? Threads : warp_lanes;
    const int lane = threadIdx.x % lanes;
    T inclusive = x;
#pragma unroll
    for (int by = 1; by < lanes; by *= 2) {
      const T other = shuffle_up(inclusive, by, lanes);
      if (lane >= by) inclusive = C::apply(other, inclusive);
    }
    T before = shuffle_up(inclusive, 1, lanes);
    if (lane == 0) before = C::template identity<T>();
    if constexpr (Threads <= warp_lanes) {
      total = lanes_reduce<C, lanes>(x);
      return before;
    } else {
      if (lane == warp_lanes - 1) shared[threadIdx.x / warp_lanes] = inclusive;
      __syncthreads();
      T ahead = C::template identity<T>();
      total = ahead;
      for (int w = 0; w < Threads / warp_lanes; ++w) {
        if (w == int(threadIdx.x) / warp_lanes) ahead = total;
        total = C::apply(total, shared[w]);
      }
      return C::apply(ahead, before);
    }
  }
}
template <typename C, int Threads, typename T>
requires(!is_same<T, uint8_t>) TILE_INLINE T team_scan(T x, T& total, uint8_t* shared) {
  return team_scan<C, Threads>(x, total, reinterpret_cast<T*>(shared));
}
template <typename C, int Threads, typename T>
requires(Threads <= warp_lanes) TILE_INLINE T team_scan(T x, T& total) {
  return team_scan<C, Threads>(x, total, static_cast<T*>(nullptr));
}

// Copies a tile and transposes it. In memory, rows are contiguous along `Along` and have the stride `stride`. The
// element at from[a + b * stride] is stored to to[a * (Across + 1) + b].
template <int Along, int Across, int Threads, typename T>
TILE_INLINE void transpose_tile(compute_t<T>* to, const T* from, int64_t stride, int along, int across) {
  for (int i = threadIdx.x; i < Along * Across; i += Threads) {
    const int a = i % Along, b = i / Along;
    if (a < along && b < across) to[a * (Across + 1) + b] = detail::decode(from[a + b * stride]);
  }
}

}  // namespace heddle::tile
