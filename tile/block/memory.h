// Loads and stores of tiles, through a pointer for each element or through a window (a box of a tensor with strides and
// bounds). `V` is the vector length: each group of V consecutive registers, beginning with registers 0 to V - 1, is
// contiguous in memory and aligned to the size of the group. A group is accessed at once if all of its elements are to
// be accessed. Otherwise, its elements are accessed one by one.
#pragma once

#include "tile/arch/sm80/global.h"
#include "tile/arch/sm80/pointer.h"
#include "tile/block/tile.h"

namespace heddle::tile::block {

template <typename T>
struct without_const {
  using type = T;
};
template <typename T>
struct without_const<const T> {
  using type = T;
};
template <typename P>
struct pointee;
template <typename T>
struct pointee<T*> {
  using type = typename without_const<T>::type;
};
template <typename P>
using pointee_t = typename pointee<P>::type;

// How an access treats the caches. kVolatile: the access happens at this point, exactly once per execution. kAcquire:
// in addition, later accesses see the data that was released by the thread that wrote the loaded value.
enum class Access : uint8_t { kPlain, kVolatile, kAcquire };

namespace detail {

template <typename T>
struct stored {
  using type = T;
};
// A bool is a byte in memory. Any nonzero byte is true.
template <>
struct stored<bool> {
  using type = uint8_t;
};
template <typename T>
using stored_t = typename stored<T>::type;

template <int V, Access A, typename T>
TILE_INLINE void load_run(T* to, const T* from) {
  using S = stored_t<T>;
  const S* p = reinterpret_cast<const S*>(from);
  if constexpr (A != Access::kPlain) {
    using U = uint_t<sizeof(S)>;
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const U word = sm80::load_now<A == Access::kAcquire>(reinterpret_cast<const U*>(p + i));
      const S x = __builtin_bit_cast(S, word);
      to[i] = static_cast<T>(x);
    }
  } else {
    const auto all = tile::detail::load_elements<V, V>(p);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      if constexpr (is_same<T, bool>) {
        to[i] = all.e[i] != 0;
      } else {
        to[i] = all.e[i];
      }
    }
  }
}
template <int V, typename T>
TILE_INLINE void store_run(T* to, const T* from) {
  using S = stored_t<T>;
  typename tile::detail::access<V, V, S>::elements all;
#pragma unroll
  for (int i = 0; i < V; ++i) {
    if constexpr (is_same<T, bool>) {
      all.e[i] = from[i] ? 1 : 0;
    } else {
      all.e[i] = from[i];
    }
  }
  tile::detail::store_elements<V, V>(reinterpret_cast<S*>(to), all);
}

// Calls whole(r) for each group of V registers if the whole group may be accessed. Otherwise calls single(r) for each
// register of the group that may be accessed.
template <int V, int N, typename May, typename Whole, typename Single>
TILE_INLINE void each_run(May may, Whole whole, Single single) {
  static_assert(N % V == 0);
#pragma unroll
  for (int r = 0; r < N; r += V) {
    if constexpr (V == 1) {
      if (may(r)) single(r);
    } else {
      bool all = true;
#pragma unroll
      for (int i = 0; i < V; ++i) all = all && may(r + i);
      if (all) {
        whole(r);
      } else {
#pragma unroll
        for (int i = 0; i < V; ++i) {
          if (may(r + i)) single(r + i);
        }
      }
    }
  }
}

struct always {
  TILE_INLINE bool operator()(int) const { return true; }
};

// of_thread() returns the address of the thread's first element. of_register() returns the offset of another register's
// element from the thread's first element.
template <typename T, int Rank>
TILE_INLINE T* of_thread(T* p, const int64_t (&stride)[Rank], const Place& here) {
#pragma unroll
  for (int d = 0; d < Rank; ++d) p += here.at[d] * stride[d];
  return tile::sm80::anchored(p);
}
template <typename L, int Rank>
TILE_INLINE int64_t of_register(const int64_t (&stride)[Rank], int r) {
  int64_t at = 0;
#pragma unroll
  for (int d = 0; d < Rank; ++d) at += L::of_register(r, d) * stride[d];
  return at;
}

}  // namespace detail

// ---- Through pointers

// Returns the address of each element i of a tile: p + the sum of i[d] * stride[d].
template <typename L, typename T, int Rank>
TILE_INLINE Tile<T*, L> addresses(T* p, const int64_t (&stride)[Rank]) {
  T* const first = detail::of_thread(p, stride, L::here());
  Tile<T*, L> x;
  each_register<L::kRegisters>([&](int r) { x.v[r] = first + detail::of_register<L>(stride, r); });
  return x;
}

// Loads *p where the mask (a tile or a scalar) is true; the result is `other` elsewhere.
template <int V = 1, Access A = Access::kPlain, typename P, typename L, typename M, typename O>
TILE_INLINE auto load(const Tile<P, L>& p, const M& mask, const O& other) {
  using T = pointee_t<P>;
  Tile<T, L> x;
  each_register<L::kRegisters>([&](int r) { x.v[r] = detail::element(other, r); });
  const Place here = L::here();
  detail::each_run<V, L::kRegisters>([&](int r) { return bool(detail::element(mask, r)) && L::inside(here, r); },
                                     [&](int r) { detail::load_run<V, A>(x.v + r, p.v[r]); },
                                     [&](int r) { detail::load_run<1, A>(x.v + r, p.v[r / V * V] + r % V); });
  return x;
}
template <int V = 1, Access A = Access::kPlain, typename P, typename L, typename M>
TILE_INLINE auto load(const Tile<P, L>& p, const M& mask) {
  return load<V, A>(p, mask, pointee_t<P>{});
}
template <int V = 1, Access A = Access::kPlain, typename P, typename L>
TILE_INLINE auto load(const Tile<P, L>& p) {
  return load<V, A>(p, true);
}

namespace detail {

struct alignas(16) Piece {
  uint32_t word[4];
};

// Returns the 16 bytes at byte offset `shift` in two consecutive pieces.
TILE_INLINE Piece shifted(const Piece& low, const Piece& high, uint32_t shift) {
  uint32_t word[8];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    word[i] = low.word[i];
    word[4 + i] = high.word[i];
  }
#pragma unroll
  for (int i = 0; i < 6; ++i) word[i] = (shift & 8) != 0 ? word[i + 2] : word[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) word[i] = (shift & 4) != 0 ? word[i + 1] : word[i];
  Piece out;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    out.word[i] = uint32_t(((uint64_t(word[i + 1]) << 32) | word[i]) >> (shift % 4 * 8));
  }
  return out;
}

}  // namespace detail

// Loads in flight. Groups of V elements (16 bytes) are loaded, which need not be aligned to 16 bytes. For each group,
// holds the two aligned 16-byte pieces that contain the group; shifted() extracts the group from them.
template <typename T, typename L, int V>
struct Pieces {
  static_assert(V * sizeof(T) == 16 && sizeof(T) == 2 && L::kRegisters % V == 0);
  static constexpr int kGroups = L::kRegisters / V;
  static constexpr uint32_t kAll = (1u << V) - 1;
  detail::Piece low[kGroups], high[kGroups];
  uint32_t shift[kGroups], asked[kGroups];  // shift: in bytes; asked: bit i is set if element i was requested
};

// Starts loads of *p where the mask is true. A piece is loaded as a whole if any of its elements is requested. Does not
// wait for memory.
template <int V, typename P, typename L, typename M>
TILE_INLINE auto load_pieces(const Tile<P, L>& p, const M& mask) {
  using To = Pieces<pointee_t<P>, L, V>;
  const Place here = L::here();
  To x;
#pragma unroll
  for (int g = 0; g < To::kGroups; ++g) {
    x.asked[g] = 0;
#pragma unroll
    for (int i = 0; i < V; ++i) {
      x.asked[g] |= uint32_t(bool(detail::element(mask, g * V + i)) && L::inside(here, g * V + i)) << i;
    }
    x.shift[g] = uint32_t(reinterpret_cast<uintptr_t>(p.v[g * V]) % 16);
    x.low[g] = x.high[g] = detail::Piece{};
    // If no element of one piece is requested, the other piece is loaded in its place. This avoids a branch per piece.
    const int first = (x.asked[g] & (To::kAll >> (x.shift[g] / 2))) != 0 ? 0 : 1;
    const int last = (x.asked[g] >> (V - x.shift[g] / 2)) != 0 ? 1 : 0;
    const auto* from = reinterpret_cast<const detail::Piece*>(reinterpret_cast<const char*>(p.v[g * V]) - x.shift[g]);
    if (x.asked[g] != 0) {
      x.low[g] = from[first];
      x.high[g] = from[last];
    }
  }
  return x;
}

// Returns the loaded elements, with 0 for elements that were not requested.
template <typename T, typename L, int V>
TILE_INLINE Tile<T, L> shifted(const Pieces<T, L, V>& x) {
  Tile<T, L> y;
#pragma unroll
  for (int g = 0; g < x.kGroups; ++g) {
    const detail::Piece all = detail::shifted(x.low[g], x.high[g], x.shift[g]);
#pragma unroll
    for (int i = 0; i < V; ++i) {
      const T e = __builtin_bit_cast(T, uint16_t(all.word[i / 2] >> (i % 2 * 16)));
      y.v[g * V + i] = (x.asked[g] >> i & 1) != 0 ? e : T{};
    }
  }
  return y;
}

// Loads one element, in every thread.
template <Access A = Access::kPlain, typename T>
TILE_INLINE auto load(T* p, bool mask = true, typename without_const<T>::type other = {}) {
  if (mask) detail::load_run<1, A>(&other, const_cast<const T*>(p));
  return other;
}

namespace detail {

// For each element, calls f(register) in one of the threads that hold the element, and gives the result to all of these
// threads.
template <typename L, typename T, typename M, typename F, typename S>
TILE_INLINE Tile<T, L> once(S shared, const M& mask, F f) {
  const Place here = L::here();
  Tile<T, L> old{};
  if constexpr (!L::kReplicated) {
#pragma unroll
    for (int r = 0; r < L::kRegisters; ++r) {
      if (bool(element(mask, r)) && L::inside(here, r)) old.v[r] = f(r);
    }
    return old;
  } else {
    T* memory = shared.template begin<T>();
    int at = 0;
#pragma unroll
    for (int d = 0; d < L::kRank; ++d) at = at * L::size(d) + here.at[d];
    const bool mine = L::owner();
#pragma unroll
    for (int r = 0; r < L::kRegisters; ++r) {
      int from = 0;
      for (int d = 0; d < L::kRank; ++d) from = from * L::size(d) + L::of_register(r, d);
      if (mine && bool(element(mask, r)) && L::inside(here, r)) memory[at + from] = f(r);
    }
    sync();
#pragma unroll
    for (int r = 0; r < L::kRegisters; ++r) {
      int from = 0;
      for (int d = 0; d < L::kRank; ++d) from = from * L::size(d) + L::of_register(r, d);
      if (bool(element(mask, r)) && L::inside(here, r)) old.v[r] = memory[at + from];
    }
    return old;
  }
}
// Calls f() in one thread and gives the result to the whole block. Barriers order the call after earlier and before
// later accesses of the block.
template <typename T, typename F, typename S>
TILE_INLINE T once(S shared, bool mask, F f) {
  sync();
  T* memory = reinterpret_cast<T*>(shared.memory());
  if (threadIdx.x == 0) *memory = mask ? f() : T{};
  sync();
  return *memory;
}

}  // namespace detail

// Loads data that other blocks may be writing. One thread loads an element for all threads that hold it, so that these
// threads agree on its value and leave a waiting loop together.
template <int V = 1, typename P, typename L, typename S, typename M, typename O>
TILE_INLINE auto load_volatile(S shared, const Tile<P, L>& p, const M& mask, const O& other) {
  using T = pointee_t<P>;
  if constexpr (!L::kReplicated) {
    return load<V, Access::kVolatile>(p, mask, other);
  } else {
    Tile<T, L> x = detail::once<L, T>(shared, mask, [&](int r) {
      T one;
      detail::load_run<1, Access::kVolatile>(&one, static_cast<const T*>(p.v[r]));
      return one;
    });
    each_register<L::kRegisters>([&](int r) {
      if (!bool(detail::element(mask, r))) x.v[r] = detail::element(other, r);
    });
    return x;
  }
}
template <int V = 1, typename P, typename L, typename S, typename M>
TILE_INLINE auto load_volatile(S shared, const Tile<P, L>& p, const M& mask) {
  return load_volatile<V>(shared, p, mask, pointee_t<P>{});
}
template <int V = 1, typename P, typename L, typename S>
TILE_INLINE auto load_volatile(S shared, const Tile<P, L>& p) {
  return load_volatile<V>(shared, p, true);
}
template <typename T, typename S>
TILE_INLINE auto load_volatile(S shared, T* p, bool mask = true, typename without_const<T>::type other = {}) {
  using V = typename without_const<T>::type;
  return detail::once<V>(shared, true, [&] { return load<Access::kAcquire>(p, mask, other); });
}

// Stores each element once, even if several threads hold it.
template <int V = 1, typename T, typename L, typename M>
TILE_INLINE void store(const Tile<T*, L>& p, const Tile<T, L>& x, const M& mask) {
  const Place here = L::here();
  bool mine = true;
  if constexpr (L::kReplicated) mine = L::owner();
  detail::each_run<V, L::kRegisters>(
      [&](int r) { return mine && bool(detail::element(mask, r)) && L::inside(here, r); },
      [&](int r) { detail::store_run<V>(p.v[r], x.v + r); }, [&](int r) { detail::store_run<1>(p.v[r], x.v + r); });
}
template <int V = 1, typename T, typename L>
TILE_INLINE void store(const Tile<T*, L>& p, const Tile<T, L>& x) {
  store<V>(p, x, true);
}
template <typename T>
TILE_INLINE void store(T* p, const typename without_const<T>::type& x, bool mask = true) {
  if (mask && threadIdx.x == 0) detail::store_run<1>(p, &x);
}

// ---- Through windows

// A box of a tensor. Its element (c0, c1, ...) is at p[c0 * stride[0] + c1 * stride[1] + ...]. An element is valid if
// first[d] <= cd < last[d] for every dimension d whose bit is set in Checked.
template <typename T, int Rank, unsigned Checked = 0>
struct Window {
  T* p;
  int64_t stride[Rank];
  int32_t first[Rank], last[Rank];
};

// Returns the box that begins at index `start` of the tensor at `base`.
template <unsigned Checked, typename T, int Rank>
TILE_INLINE Window<T, Rank, Checked> window(T* base, const int64_t (&extent)[Rank], const int64_t (&stride)[Rank],
                                            const int64_t (&start)[Rank]) {
  Window<T, Rank, Checked> w;
  w.p = base;
#pragma unroll
  for (int d = 0; d < Rank; ++d) {
    constexpr int64_t kMost = 1 << 30;
    const int64_t left = extent[d] - start[d];
    w.p += start[d] * stride[d];
    w.stride[d] = stride[d];
    w.first[d] = static_cast<int32_t>(start[d] >= 0 ? 0 : -start[d] < kMost ? -start[d] : kMost);
    w.last[d] = static_cast<int32_t>(left < 0 ? 0 : left < kMost ? left : kMost);
  }
  return w;
}

// A tensor in memory, and the value of elements outside the tensor.
template <typename T, int Rank>
struct View {
  T* p;
  int64_t extent[Rank], stride[Rank];
  T padding;
};
template <unsigned Checked, typename T, int Rank>
TILE_INLINE Window<T, Rank, Checked> window(const View<T, Rank>& v, const int64_t (&start)[Rank]) {
  return window<Checked>(v.p, v.extent, v.stride, start);
}

// row_pointers() returns the addresses of elements in the rows whose indices are in the tile `rows`, from column
// `column` on. row_mask() returns a mask of the elements that are inside the tensor.
template <typename T, typename L>
TILE_INLINE Tile<T*, L> row_pointers(const View<T, 2>& v, const Tile<int32_t, L>& rows, int64_t column) {
  const auto columns = iota<L, 1, int64_t>(column);
  return map([&](int32_t r, int64_t c) { return v.p + r * v.stride[0] + c * v.stride[1]; }, rows, columns);
}
template <typename T, typename L>
TILE_INLINE Tile<bool, L> row_mask(const View<T, 2>& v, const Tile<int32_t, L>& rows, int64_t column) {
  const auto columns = iota<L, 1, int64_t>(column);
  return map([&](int32_t r, int64_t c) { return r >= 0 && r < v.extent[0] && c >= 0 && c < v.extent[1]; }, rows,
             columns);
}

namespace detail {

template <typename L, typename T, int Rank, unsigned Checked>
TILE_INLINE bool in_window(const Window<T, Rank, Checked>& w, const Place& here, int r) {
  bool all = true;
#pragma unroll
  for (int d = 0; d < Rank; ++d) {
    if (Checked >> d & 1) {
      const int32_t c = here.at[d] + L::of_register(r, d);
      all = all && c >= w.first[d] && c < w.last[d];
    }
    all = all && L::inside(here, r, d);
  }
  return all;
}
}  // namespace detail

template <typename L, int V = 1, Access A = Access::kPlain, typename P, int Rank, unsigned Checked, typename O>
TILE_INLINE auto load(const Window<P, Rank, Checked>& w, const O& other) {
  using T = typename without_const<P>::type;
  Tile<T, L> x;
  each_register<L::kRegisters>([&](int r) { x.v[r] = detail::element(other, r); });
  const Place here = L::here();
  const T* p = detail::of_thread(w.p, w.stride, here);
  detail::each_run<V, L::kRegisters>(
      [&](int r) { return detail::in_window<L>(w, here, r); },
      [&](int r) { detail::load_run<V, A>(x.v + r, p + detail::of_register<L>(w.stride, r)); },
      [&](int r) { detail::load_run<1, A>(x.v + r, p + detail::of_register<L>(w.stride, r)); });
  return x;
}
template <int V = 1, typename T, typename L, int Rank, unsigned Checked>
TILE_INLINE void store(const Window<T, Rank, Checked>& w, const Tile<T, L>& x) {
  const Place here = L::here();
  bool mine = true;
  if constexpr (L::kReplicated) mine = L::owner();
  T* p = detail::of_thread(w.p, w.stride, here);
  detail::each_run<V, L::kRegisters>(
      [&](int r) { return mine && detail::in_window<L>(w, here, r); },
      [&](int r) { detail::store_run<V>(p + detail::of_register<L>(w.stride, r), x.v + r); },
      [&](int r) { detail::store_run<1>(p + detail::of_register<L>(w.stride, r), x.v + r); });
}

// pointers() returns the elements' addresses and inside() a mask of the valid elements, for operations other than loads
// and stores.
template <typename L, typename T, int Rank, unsigned Checked>
TILE_INLINE Tile<T*, L> pointers(const Window<T, Rank, Checked>& w) {
  return addresses<L>(w.p, w.stride);
}
template <typename L, typename T, int Rank, unsigned Checked>
TILE_INLINE Tile<bool, L> inside(const Window<T, Rank, Checked>& w) {
  const Place here = L::here();
  Tile<bool, L> x;
  each_register<L::kRegisters>([&](int r) { x.v[r] = detail::in_window<L>(w, here, r); });
  return x;
}

}  // namespace heddle::tile::block
