// Products by the warpgroup's matrix instruction (sm_90a). Operands are 16-bit floats in shared memory; the first
// operand may also be in registers. After wait_for_operands(), the instruction sees what other threads have stored or
// copied to the operands.
#pragma once

#include "tile/arch/sm90/barrier.h"
#include "tile/arch/sm90/wgmma_registers.h"
#include "tile/block/dot.h"
#include "tile/core/swizzle.h"

namespace heddle::tile::block {

// The layout of the sums. Each warpgroup has blocks of 64 rows with all N columns.
template <int M, int N, int Warps>
struct warpgroup_layout {
  static constexpr int kGroups = Warps / 4, kBlocksM = M / (64 * kGroups);
  static_assert(M % (64 * kGroups) == 0 && N % 16 == 0 && N <= 256);
  using type = Layout<dims<M, N>, reg<2, 1, 1>, lane<4, 1, 2>, lane<8, 0, 1>, reg<2, 0, 8>, reg<N / 8, 1, 8>,
                      warp<4, 0, 16>, reg<kBlocksM, 0, 64>, warp<kGroups, 0, 64 * kBlocksM>>;
};

// The layout of an operand for the instruction. If AlongK, the operand consists of panels; a panel has 128 bytes of k
// of every row, and the last panel may be partly empty. Otherwise, it consists of strips of 64 rows, with a line for
// each k. 16-byte pieces are swizzled. The operand must begin at a multiple of 1024 bytes.
template <typename T, int Rows, int Depth, bool AlongK>
struct SwizzledOperand {
  using element = T;
  static constexpr bool kAlongK = AlongK;
  static constexpr int kGivenRows = Rows, kDepth = Depth;
  static constexpr int kSize = int(sizeof(T)), kSteps = Depth / 16, kRows = (Rows + 7) / 8 * 8;
  static constexpr int kStrips = (Rows + 63) / 64, kStripBytes = AlongK ? kRows * 128 : Depth * 128;
  static constexpr int kBytes = (AlongK ? (Depth + 63) / 64 : kStrips) * kStripBytes;
  static_assert(kSize == 2 && Depth % 16 == 0);

  // Returns the index of element (row, k) in the operand's memory, in elements. Indices cannot be added under a
  // swizzle, so `row` and `k` must be the complete coordinates.
  TILE_HD static constexpr int at(int row, int k) {
    const int bytes = AlongK ? k / 64 * kStripBytes + row * 128 + k % 64 * kSize
                             : row / 64 * kStripBytes + k * 128 + row % 64 * kSize;
    return int(swizzle<128>(uint32_t(bytes))) / kSize;
  }
  TILE_INLINE static uint64_t descriptor(const T* memory, int row, int step) {
    const int bytes =
        AlongK ? step / 4 * kStripBytes + row * 128 + step % 4 * 32 : row / 64 * kStripBytes + step * 16 * 128;
    return sm90::make_smem_descriptor(cuda::shared_address(memory) + bytes, AlongK, kStripBytes);
  }
};

namespace detail {

// Calls f(index in the operand, register) for each group of V adjacent elements in a tile of layout L.
template <typename O, int RowDim, int V, typename L, typename F>
TILE_INLINE void each_group(F f) {
  const Place here = L::here();
  bool mine = true;
  if constexpr (L::kReplicated) mine = L::owner();
#pragma unroll
  for (int r = 0; r < L::kRegisters; r += V) {
    if (!mine || !L::inside(here, r)) continue;
    f(O::at(here.at[RowDim] + L::of_register(r, RowDim), here.at[1 - RowDim] + L::of_register(r, 1 - RowDim)), r);
  }
}

}  // namespace detail

template <typename O, int RowDim, typename T, typename L>
TILE_INLINE void put_swizzled(typename O::element* memory, const Tile<T, L>& x) {
  using E = typename O::element;
  constexpr int V = detail::operand_run<O, L, Axes<RowDim, 1 - RowDim>>();
  detail::each_group<O, RowDim, V, L>([&](int at, int r) {
    struct alignas(V * sizeof(E)) Group {
      E e[V];
    } group;
#pragma unroll
    for (int i = 0; i < V; ++i) group.e[i] = cast<E>(x.v[r + i]);
    *reinterpret_cast<Group*>(memory + at) = group;
  });
}
template <typename O, int RowDim, int V, typename T, typename L, typename M>
TILE_INLINE void copy_async_swizzled(typename O::element* memory, const Tile<T*, L>& p, const M& mask) {
  detail::each_group<O, RowDim, V, L>([&](int at, int r) {
    detail::copy_run<V>(memory + at, p.v[r], [&](int i) { return bool(detail::element(mask, r + i)); });
  });
}

template <int Pending>
TILE_INLINE void wait_for_operands() {
  sm80::wait_copies<Pending>();
  sm90::fence_async_shared();
  sync();
}

// Like wait_for_operands(), for operands that the block's own threads have stored.
TILE_INLINE void show_operands() {
  sm90::fence_async_shared();
  sync();
}

// The operands of multiply_by_group(): SwizzledSource is in shared memory, HeldSource in registers.
template <typename O>
struct SwizzledSource {
  static constexpr bool held = false;
  using operand = O;
  const typename O::element* memory;
};
template <typename In, typename L>
struct HeldSource {
  static constexpr bool held = true;
  const Tile<In, L>& x;
};

namespace detail {

// Issues the instructions of a product whose operands are both in shared memory.
template <typename Sums, typename P, typename O, typename L>
TILE_INLINE void issue_products(const SwizzledSource<P>& a, const SwizzledSource<O>& b, Tile<float, L>& y) {
  constexpr int N = Sums::type::size(1), kEach = N / 2;
  const int row = Sums::type::of_warp(int(threadIdx.x) / 128 * 4, 0);
#pragma unroll
  for (int step = 0; step < O::kSteps; ++step) {
    const uint64_t from_b = O::descriptor(b.memory, 0, step);
#pragma unroll
    for (int m = 0; m < Sums::kBlocksM; ++m) {
      sm90::Wgmma<typename O::element, N>::template issue<!P::kAlongK, !O::kAlongK>(
          *reinterpret_cast<float(*)[kEach]>(y.v + m * kEach), P::descriptor(a.memory, row + 64 * m, step), from_b, 1);
    }
  }
}

}  // namespace detail

// Returns c + a b. L is the layout of c and of the result. If L is the transpose of the layout of Sums, the result is c
// + (a b)^T instead. `meanwhile` runs while the tensor cores multiply.
template <typename Sums, typename A, typename O, typename L, typename F>
TILE_INLINE Tile<float, L> multiply_by_group(const A& a, const SwizzledSource<O>& b, const Tile<float, L>& c,
                                             F meanwhile) {
  constexpr int N = Sums::type::size(1), kEach = N / 2, kM = Sums::kBlocksM;
  using In = typename O::element;
  Tile<float, L> y = c;
  // The instructions read these words (a first operand in registers) until the wait below.
  [[maybe_unused]] uint32_t words[A::held ? kM : 1][A::held ? O::kSteps : 1][4];
  if constexpr (A::held) {
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int step = 0; step < O::kSteps; ++step) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int at = (m * (2 * O::kSteps) + 2 * step + i / 2) * 4 + i % 2 * 2;
          words[m][step][i] = uint32_t(a.x.v[at].bits) | uint32_t(a.x.v[at + 1].bits) << 16;
          sm90::fence_operand(words[m][step][i]);
        }
      }
    }
  }
  each_register<L::kRegisters>([&](int r) { sm90::fence_operand(y.v[r]); });
  sm90::wgmma_fence();
  if constexpr (A::held) {
#pragma unroll
    for (int step = 0; step < O::kSteps; ++step) {
      const uint64_t from_b = O::descriptor(b.memory, 0, step);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        sm90::WgmmaRegisters<In, N>::template issue<!O::kAlongK>(*reinterpret_cast<float(*)[kEach]>(y.v + m * kEach),
                                                                 words[m][step], from_b, 1);
      }
    }
  } else {
    detail::issue_products<Sums>(a, b, y);
  }
  sm90::wgmma_commit();
  meanwhile();
  sm90::wgmma_wait<0>();
  each_register<L::kRegisters>([&](int r) { sm90::fence_operand(y.v[r]); });
  return y;
}

template <typename Sums, typename A, typename O, typename L>
TILE_INLINE Tile<float, L> multiply_by_group(const A& a, const SwizzledSource<O>& b, const Tile<float, L>& c) {
  return multiply_by_group<Sums>(a, b, c, [] {});
}

// Like multiply_by_group(), but in place and without waiting. Until end_products(), only further calls of
// begin_product() may read or write c. On return, the operands of all but the last `Pending` calls have been read.
template <typename Sums, int Pending, typename A, typename O, typename L>
TILE_INLINE void begin_product(Tile<float, L>& c, const A& a, const SwizzledSource<O>& b) {
  sm90::wgmma_fence();
  detail::issue_products<Sums>(a, b, c);
  sm90::wgmma_commit();
  sm90::wgmma_wait<Pending>();
}
template <typename L>
TILE_INLINE void end_products(Tile<float, L>& c) {
  sm90::wgmma_wait<0>();
  each_register<L::kRegisters>([&](int r) { sm90::fence_operand(c.v[r]); });
}

}  // namespace heddle::tile::block
