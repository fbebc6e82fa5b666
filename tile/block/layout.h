// The mapping of a tile's elements to the registers of the threads of a block. The index of a register, a lane or a
// warp is written in mixed radix. Each digit is a step along one dimension of the tile. A lane or warp digit without a
// dimension means that several threads hold the same elements.
//
//   using Rows = Layout<dims<64, 48>,        // the shape
//                       reg<4, 1, 1>,        // 4 registers: neighbours along dimension 1
//                       lane<4, 1, 4>,       // 4 lanes: the following groups of 4 columns
//                       lane<8, 0, 1>,       // 8 lanes: 8 rows
//                       warp<4, 0, 8>,       // 4 warps: groups of 8 rows
//                       reg<2, 0, 32>,       // each thread has 2 rows, 32 apart,
//                       reg<3, 1, 16>>;      // and 3 groups of 4 columns in each row
//
// The parameters of a digit are its size, dimension and stride. The digits of a kind (registers, lanes or warps) form
// the index, with the fastest digit first. Sizes need not be powers of two, but the product of the sizes of the lane
// digits must be 32. If digits reach beyond the shape, the elements outside exist only in registers: loads fill them
// with zeros; stores and reductions ignore them.
//
// Among the digits of one dimension, of any kind, the stride of a digit is the product of the sizes of the digits with
// smaller strides. So a thread never holds an element in two registers.
#pragma once

#include "tile/arch/cuda/builtins.h"
#include "tile/arch/sm80/named_barrier.h"
#include "tile/core/tuple.h"

namespace heddle::tile::block {

// Waits for all computing threads of the block. If the block also has other warps, HEDDLE_BLOCK_THREADS is the number
// of computing threads.
TILE_INLINE void sync() {
#ifdef HEDDLE_BLOCK_THREADS
  constexpr int kBarrier = 1;  // a named barrier
  cuda::named_barrier_sync<kBarrier>(HEDDLE_BLOCK_THREADS);
#else
  __syncthreads();
#endif
}

enum class Part : uint8_t { kRegister, kLane, kWarp };

template <Part P, int Size, int Dim, int Stride>
struct digit {
  static constexpr Part part = P;
  static constexpr int size = Size, dim = Dim, stride = Stride;
  static_assert(Size >= 1);
};
// Dim = -1: the elements do not depend on the digit.
template <int Size, int Dim = -1, int Stride = 0>
using reg = digit<Part::kRegister, Size, Dim, Stride>;
template <int Size, int Dim = -1, int Stride = 0>
using lane = digit<Part::kLane, Size, Dim, Stride>;
template <int Size, int Dim = -1, int Stride = 0>
using warp = digit<Part::kWarp, Size, Dim, Stride>;

inline constexpr int kMaxRank = 8;

// The coordinates of an element in a tile, or an offset. The coordinates are the sum of the offsets of the element's
// register, lane and warp.
struct Place {
  int at[kMaxRank] = {};
};

namespace detail {

template <Part P, typename D, typename F>
TILE_HD constexpr void of_part(int& below, F& f) {
  if constexpr (D::part == P) {
    f(D{}, below);
    below *= D::size;
  }
}
// Calls f(digit, below) for the digits of part P. `below` is the product of the sizes of the part's preceding digits.
template <Part P, typename... D, typename F>
TILE_HD constexpr void each_of(F f) {
  int below = 1;
  (of_part<P, D>(below, f), ...);
}

// The offset along dimension `dim` of the register, lane or warp (part `P`) with index `n`.
template <Part P, typename... D>
TILE_HD constexpr int coordinate(int n, int dim) {
  int sum = 0;
  each_of<P, D...>([&](auto d, int below) { sum += d.dim == dim ? n / below % d.size * d.stride : 0; });
  return sum;
}

}  // namespace detail

template <typename Shape, typename... D>
struct Layout {
  using shape = Shape;
  static constexpr int kRank = Shape::kSize;
  static constexpr int kRegisters = ((D::part == Part::kRegister ? D::size : 1) * ... * 1);
  static constexpr int kLanes = ((D::part == Part::kLane ? D::size : 1) * ... * 1);
  static constexpr int kWarps = ((D::part == Part::kWarp ? D::size : 1) * ... * 1);
  static constexpr int kThreads = 32 * kWarps;
  static_assert(kLanes == 32, "the digits of lanes multiply to 32");
  static_assert(kRank <= kMaxRank);

  // The offsets of a register, a lane and a warp along dimension `dim`.
  TILE_HD static constexpr int of_register(int r, int dim) { return detail::coordinate<Part::kRegister, D...>(r, dim); }
  TILE_HD static constexpr int of_lane(int l, int dim) { return detail::coordinate<Part::kLane, D...>(l, dim); }
  TILE_HD static constexpr int of_warp(int w, int dim) { return detail::coordinate<Part::kWarp, D...>(w, dim); }

  // The offset of this thread: the sum of the offsets of its lane and warp. It is computed at run time, whereas the
  // offsets of registers are compile-time constants.
  TILE_INLINE static Place here() { return of_thread(int(threadIdx.x)); }
  TILE_HD static constexpr Place of_thread(int thread) {
    Place p;
    for (int d = 0; d < kRank; ++d) p.at[d] = of_lane(thread % 32, d) + of_warp(thread / 32, d);
    return p;
  }

  TILE_HD static constexpr int size(int dim) { return Shape::at(dim); }
  TILE_HD static constexpr int elements() {
    int n = 1;
    for (int d = 0; d < kRank; ++d) n *= Shape::at(d);
    return n;
  }
  // One more than the largest coordinate that the digits reach.
  TILE_HD static constexpr int span(int dim) { return 1 + ((D::dim == dim ? (D::size - 1) * D::stride : 0) + ... + 0); }
  TILE_HD static constexpr bool fits(int dim) { return span(dim) <= Shape::at(dim); }
  TILE_HD static constexpr bool fits() {
    for (int d = 0; d < kRank; ++d) {
      if (!fits(d)) return false;
    }
    return true;
  }
  // True if register r of the thread with offset `here` holds an element of the tile.
  TILE_HD static constexpr bool inside(const Place& here, int r) {
    bool all = true;
    for (int d = 0; d < kRank; ++d) all = all && inside(here, r, d);
    return all;
  }
  TILE_HD static constexpr bool inside(const Place& here, int r, int dim) {
    return fits(dim) || here.at[dim] + of_register(r, dim) < Shape::at(dim);
  }

  // The register with the same offset as register r of the layout From. Each thread must hold the same elements in both
  // layouts.
  template <typename From>
  TILE_HD static constexpr int register_at(int r) {
    int number = 0;
    detail::each_of<Part::kRegister, D...>([&](auto d, int below) {
      if (d.dim >= 0) number += From::of_register(r, d.dim) / (d.stride > 0 ? d.stride : 1) % d.size * below;
    });
    return number;
  }

  // The register of slice_t<Layout, Axis> into which a reduction along Axis combines register r.
  template <int Axis>
  TILE_HD static constexpr int reduced(int r) {
    int number = 0, above = 1;
    detail::each_of<Part::kRegister, D...>([&](auto d, int below) {
      if (d.dim == Axis) return;
      number += r / below % d.size * above;
      above *= d.size;
    });
    return number;
  }
  // The index that results from the index r of a register if its digits along Axis with strides below `stride` are set
  // to 0.
  template <int Axis>
  TILE_HD static constexpr int rounded(int r, int stride) {
    int number = 0;
    detail::each_of<Part::kRegister, D...>([&](auto d, int below) {
      if (d.dim != Axis || d.stride >= stride) number += r / below % d.size * below;
    });
    return number;
  }
  // The next larger stride along Axis: `stride` times the size of the digit that has stride `stride`.
  template <int Axis>
  TILE_HD static constexpr int next_stride(int stride) {
    return stride * ((D::dim == Axis && D::stride == stride ? D::size : 1) * ... * 1);
  }
  // Calls f(digit, below) for the digits of part P along Axis, except digits of size 1. `below` is the product of the
  // sizes of the part's preceding digits, along any axis.
  template <Part P, int Axis, typename F>
  TILE_INLINE static void each_digit(F f) {
    detail::each_of<P, D...>([&](auto d, int below) {
      if constexpr (d.dim == Axis && d.size > 1) f(d, below);
    });
  }

  // The number of threads that hold each element.
  static constexpr int kCopies = ((D::part != Part::kRegister && D::dim < 0 ? D::size : 1) * ... * 1);
  static constexpr bool kReplicated = kCopies > 1;
  // True for exactly one of the threads that hold the same elements.
  TILE_INLINE static bool owner() {
    bool first = true;
    detail::each_of<Part::kLane, D...>([&](auto d, int below) {
      if (d.dim < 0) first = first && int(threadIdx.x) % 32 / below % d.size == 0;
    });
    detail::each_of<Part::kWarp, D...>([&](auto d, int below) {
      if (d.dim < 0) first = first && int(threadIdx.x) / 32 / below % d.size == 0;
    });
    return first;
  }

  // The largest divisor n of the number of registers such that registers 0 .. n - 1 are neighbours along `dim`.
  TILE_HD static constexpr int run(int dim) {
    int n = 1;
    while (n < kRegisters && is_run(n + 1, dim)) ++n;
    while (kRegisters % n != 0) --n;
    return n;
  }

 private:
  TILE_HD static constexpr bool is_run(int n, int dim) {
    for (int d = 0; d < kRank; ++d) {
      if (of_register(n - 1, d) != (d == dim ? n - 1 : 0)) return false;
    }
    return true;
  }
};

// ---- Layouts derived from other layouts

namespace detail {

template <typename D, int Dim>
using digit_on = digit < D::part,
      D::size, Dim, Dim<0 ? 0 : D::stride>;

// The digit that replaces D in the layout after a reduction along Axis. A register digit along Axis gets size 1. The
// lanes or warps of another digit along Axis then hold the same elements. `Behind` is added to the indices of the
// dimensions after Axis.
template <typename D, int Axis, int Behind>
using without = digit<D::part, D::dim == Axis && D::part == Part::kRegister ? 1 : D::size,
                      D::dim == Axis ? -1 : (D::dim > Axis ? D::dim + Behind : D::dim), D::dim == Axis ? 0 : D::stride>;

template <typename Shape, int Axis, typename I>
struct shape_without;
template <typename Shape, int Axis, int... I>
struct shape_without<Shape, Axis, tile::detail::indices<I...>> {
  using type = dims<Shape::at(I < Axis ? I : I + 1)...>;
};
template <typename Shape, int Axis, typename I>
struct shape_squeezed;
template <typename Shape, int Axis, int... I>
struct shape_squeezed<Shape, Axis, tile::detail::indices<I...>> {
  using type = dims<(I == Axis ? 1 : Shape::at(I))...>;
};
template <typename Shape, int Axis, typename I>
struct shape_expanded;
template <typename Shape, int Axis, int... I>
struct shape_expanded<Shape, Axis, tile::detail::indices<I...>> {
  using type = dims<(I == Axis ? 1 : Shape::at(I < Axis ? I : I - 1))...>;
};

template <typename L, int Axis>
struct slice;
template <typename Shape, typename... D, int Axis>
struct slice<Layout<Shape, D...>, Axis> {
  using type = Layout<typename shape_without<Shape, Axis, tile::detail::make_indices<Shape::kSize - 1>>::type,
                      without<D, Axis, -1>...>;
};
template <typename L, int Axis>
struct squeeze;
template <typename Shape, typename... D, int Axis>
struct squeeze<Layout<Shape, D...>, Axis> {
  using type = Layout<typename shape_squeezed<Shape, Axis, tile::detail::make_indices<Shape::kSize>>::type,
                      without<D, Axis, 0>...>;
};
template <typename L, int Axis>
struct expand;
template <typename Shape, typename... D, int Axis>
struct expand<Layout<Shape, D...>, Axis> {
  using type = Layout<typename shape_expanded<Shape, Axis, tile::detail::make_indices<Shape::kSize + 1>>::type,
                      digit_on<D, (D::dim >= Axis ? D::dim + 1 : D::dim)>...>;
};

template <typename L, typename Order>
struct permute;
template <typename Shape, typename... D, int... Order>
struct permute<Layout<Shape, D...>, dims<Order...>> {
  // The new index of dimension `dim`.
  static constexpr int to(int dim) {
    for (int i = 0; i < int(sizeof...(Order)); ++i) {
      if (dims<Order...>::at(i) == dim) return i;
    }
    return -1;
  }
  using type = Layout<dims<Shape::at(Order)...>, digit_on<D, to(D::dim)>...>;
};

template <typename L>
struct join;
template <int... N, typename... D>
struct join<Layout<dims<N...>, D...>> {
  using type = Layout<dims<N..., 2>, reg<2, int(sizeof...(N)), 1>, D...>;
};

template <typename L, typename Shape>
struct with_shape;
template <typename Old, typename... D, typename Shape>
struct with_shape<Layout<Old, D...>, Shape> {
  using type = Layout<Shape, D...>;
};

}  // namespace detail

// The layout of the result of a reduction along Axis, without dimension Axis.
template <typename L, int Axis>
using slice_t = typename detail::slice<L, Axis>::type;
// The layout of the result of a reduction along Axis, in which dimension Axis has length 1.
template <typename L, int Axis>
using squeeze_t = typename detail::squeeze<L, Axis>::type;
// The layout with a new dimension of length 1 before dimension Axis.
template <typename L, int Axis>
using expand_t = typename detail::expand<L, Axis>::type;
// The layout with permuted dimensions: dimension i of the result is dimension Order[i] of L.
template <typename L, int... Order>
using permute_t = typename detail::permute<L, dims<Order...>>::type;
// The layout with a new last dimension of length 2, whose two elements are in neighbouring registers of a thread.
template <typename L>
using join_t = typename detail::join<L>::type;
// The layout with the same digits and a different shape.
template <typename L, typename Shape>
using with_shape_t = typename detail::with_shape<L, Shape>::type;

// True if each thread holds the same elements in both layouts, possibly in different registers.
template <typename A, typename B>
TILE_HD constexpr bool same_threads() {
  bool same = A::kRank == B::kRank && A::kWarps == B::kWarps && A::kRegisters == B::kRegisters;
  for (int d = 0; same && d < A::kRank; ++d) {
    same = A::size(d) == B::size(d);
    for (int l = 0; same && l < 32; ++l) same = A::of_lane(l, d) == B::of_lane(l, d);
    for (int w = 0; same && w < A::kWarps; ++w) same = A::of_warp(w, d) == B::of_warp(w, d);
  }
  for (int r = 0; same && r < B::kRegisters; ++r) {
    const int from = A::template register_at<B>(r);
    for (int d = 0; same && d < A::kRank; ++d) same = A::of_register(from, d) == B::of_register(r, d);
  }
  return same;
}

}  // namespace heddle::tile::block
