// Operands of products in shared memory: their layout, stores of tiles to them, and the fragments that a warp reads.
#pragma once

#include "tile/arch/sm80/ldmatrix.h"
#include "tile/arch/sm80/mma.h"
#include "tile/arch/sm80/shared.h"
#include "tile/block/convert.h"

namespace heddle::tile::block {

// An operand of `Rows` x `Depth` elements in shared memory. The elements are contiguous along k (the contracted
// dimension) if AlongK, otherwise along rows. The pitch of lines is an odd multiple of 16 bytes, so that eight
// consecutive lines are in different banks. Depth is padded with zeros to a multiple of an instruction's depth. Rows
// from Rows up to Covered have memory, but undefined content.
template <typename T, int Rows, int Depth, bool AlongK, int Covered = Rows>
struct Operand {
  using element = T;
  static constexpr bool kAlongK = AlongK;
  static constexpr int kRows = Rows, kDepth = Depth, kSize = int(sizeof(T));
  static constexpr int kStep = kSize > 4 ? 1 : 32 / kSize;  // elements of k per instruction
  static constexpr int kWholeDepth = (Depth + kStep - 1) / kStep * kStep, kWholeRows = (Covered + 15) / 16 * 16;
  static constexpr int kLines = AlongK ? kWholeRows : kWholeDepth, kLine = AlongK ? kWholeDepth : kWholeRows;
  static constexpr int kPieces = (kLine * kSize + 15) / 16;
  static constexpr int kPitch = (kPieces + (kPieces % 2 == 0)) * 16 / kSize;  // in elements
  static constexpr int kBytes = kLines * kPitch * kSize;

  TILE_HD static constexpr int at(int row, int k) { return AlongK ? row * kPitch + k : k * kPitch + row; }

  // Writes zeros to the elements of k from Depth on. No other function writes these elements.
  TILE_INLINE static void fill_up(T* shared, int threads) {
    if constexpr (kWholeDepth > Depth) {
      constexpr int kMissing = kWholeDepth - Depth;
      for (int i = threadIdx.x; i < kWholeRows * kMissing; i += threads) {
        shared[at(i / kMissing, Depth + i % kMissing)] = T{};
      }
    }
  }
};

// The roles of a tile's dimensions: RowDim are the rows (for the second operand: the columns), DepthDim is k.
template <int RowDim, int DepthDim>
struct Axes {
  static constexpr int row = RowDim, depth = DepthDim;
};

namespace detail {

// The number of neighbouring elements of a tile in layout L that are contiguous in the operand; at most 16 bytes of
// elements are counted.
template <typename O, typename L, typename A>
TILE_HD constexpr int operand_run() {
  const int dim = O::kAlongK ? A::depth : A::row;
  int v = 1;
  while (2 * v * O::kSize <= 16 && L::run(dim) % (2 * v) == 0 && L::size(dim) % (2 * v) == 0) v *= 2;
  return v;
}

// Stores registers [from, from + count) of a tile to an operand. f converts each element.
template <typename O, typename A, typename T, typename L, typename F>
TILE_INLINE void put_operand(typename O::element* shared, const Tile<T, L>& x, int from, int count, F f) {
  constexpr int V = operand_run<O, L, A>();
  const Place here = L::here();
  const int at = O::at(here.at[A::row], here.at[A::depth]);
  bool mine = true;
  if constexpr (L::kReplicated) mine = L::owner();
  if (mine) {
#pragma unroll
    for (int r = from; r < from + count; r += V) {
      if (!L::inside(here, r)) continue;
      using E = typename O::element;
      struct alignas(V == 1 ? alignof(E) : V * sizeof(E)) Group {
        E e[V];
      } group;
#pragma unroll
      for (int i = 0; i < V; ++i) group.e[i] = f(x.v[r + i]);
      *reinterpret_cast<Group*>(shared + at + O::at(L::of_register(r, A::row), L::of_register(r, A::depth))) = group;
    }
  }
}

}  // namespace detail

// Reads the fragments of a warp for mma.sync from an operand. A fragment has 16 rows or, if IsB, two blocks of 8
// columns.
template <typename O, bool IsB>
struct Fragments {
  static_assert(O::kAlongK || O::kSize == 2, "other elements than those of 16 bits lie along k");
  uint32_t lane;  // shared-memory address of this lane's line in block 0 and step 0

  TILE_INLINE explicit Fragments(const typename O::element* shared) {
    const int l = threadIdx.x % 32, matrix = l / 8;
    // For A, matrix 1 is offset by 8 rows and matrix 2 by half of the instruction's k. For B, matrix 1 is offset by
    // half of k and matrix 2 by 8 columns. Matrix 3 has both offsets.
    const int other_row = IsB ? matrix / 2 : matrix % 2, other_k = IsB ? matrix % 2 : matrix / 2;
    constexpr int kHalf = O::kStep / 2;
    const int at =
        O::kAlongK ? O::at(l % 8 + other_row * 8, other_k * kHalf) : O::at(other_row * 8, l % 8 + other_k * kHalf);
    lane = cuda::shared_address(shared) + at * O::kSize;
  }
  // Reads the fragment that starts at row `row`, a multiple of 8, for step `step` of k.
  TILE_INLINE void read(uint32_t (&r)[4], int row, int step) const {
    sm80::load_matrices<!O::kAlongK>(r, lane + O::at(row, step * O::kStep) * O::kSize);
  }
};

}  // namespace heddle::tile::block
