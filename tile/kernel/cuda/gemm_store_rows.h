// The last part of a GEMM block whose epilogue stores D itself: any alignment, any results.
//
// A warp's accumulators pass through shared memory, so that a lane gets 8 neighbours of a row of D, and those begin
// where memory has a multiple of 8 elements: all accesses but those at the edges of a piece are whole, whatever D's
// rows are.
#pragma once

#include "tile/core/cuda_gemm.h"
#include "tile/core/types.h"
#include "tile/kernel/cuda/store.h"

namespace heddle::tile::sm90 {

// Accumulators of Rows rows by Columns columns of D in a warp's staging buffers, 4 KiB.
template <int Rows, int Columns, typename Acc>
struct StagedPiece {
  static_assert(Rows * Columns * sizeof(Acc) <= 2 * kGemmStagingBytes && Columns % 16 == 0);
  Acc* buffer;

  // Groups of 8 columns change places from row to row, so that fragments of 8 rows meet no bank twice.
  __device__ Acc& at(int row, int column) const {
    constexpr int kGroups = Columns % 64 == 0 ? 8 : Columns % 32 == 0 ? 4 : 2;
    return buffer[row * Columns + (column ^ (row % kGroups * 8))];
  }
};

// Hands a staged piece, whose first element is (row, column) of D, to the epilogue. The columns before the first
// multiple of 8 elements in memory and those behind the last are handed over by themselves.
template <int Rows, int Columns, typename Acc, typename Epilogue>
__device__ inline void store_piece(const StagedPiece<Rows, Columns, Acc>& piece, const Epilogue& epilogue,
                                   const GemmArgs& args, int32_t rows, int32_t columns, int batch, int row,
                                   int column) {
  constexpr int W = kGemmNeighbours, kGroups = Columns / W;
  const int lane = threadIdx.x % 32;
  const bool shifts = columns % W != 0;  // else the epilogue counts on 8 columns wherever it is called
  const auto first_of = [&](int r) {
    return shifts ? -(args.d_first + batch * args.d_batch + (row + r) * args.d_row + column) & (W - 1) : 0;
  };
  const auto hand_over = [&](int r, int c, int count) {
    const int left = columns - column - c, n = count < left ? count : left;
    if (row + r >= rows || n <= 0) return;
    Acc v[W];
#pragma unroll
    for (int i = 0; i < W; ++i) v[i] = i < count ? piece.at(r, c + i) : Acc{};
    epilogue(v, batch, row + r, column + c, n);
  };
#pragma unroll 1
  for (int i = lane; i < Rows * kGroups; i += 32) {
    const int r = i / kGroups, c = first_of(r) + i % kGroups * W;
    if (c + W <= Columns) hand_over(r, c, W);
  }
  if (!shifts) return;
#pragma unroll 1
  for (int i = lane; i < Rows * 2; i += 32) {
    const int r = i / 2, first = first_of(r);
    if (first == 0) continue;
    if (i % 2 == 0) {
      hand_over(r, 0, first);
    } else {
      hand_over(r, Columns - W + first, W - first);
    }
  }
}

// One warp's 16 rows of the kernel's own D, from (row, col). With swapped operands they are 16 columns of D.
template <bool Swapped, int N, typename Acc, typename Epilogue>
__device__ inline void store_epilogue(const Acc (&acc)[N / 2], const Epilogue& epilogue, const GemmArgs& args,
                                      uint8_t* staging, int batch, int row, int col) {
  constexpr int kPiece = N % 64 == 0 ? 64 : N % 32 == 0 ? 32 : 16;
  const int lane = threadIdx.x % 32;
  using Piece = StagedPiece<Swapped ? kPiece : 16, Swapped ? 16 : kPiece, Acc>;
  const Piece piece{reinterpret_cast<Acc*>(staging)};
#pragma unroll
  for (int p = 0; p < N / kPiece; ++p) {
    __syncwarp();  // the piece before is read
#pragma unroll
    for (int j = 0; j < kPiece / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int m = lane / 4 + i / 2 * 8, n = 8 * j + 2 * (lane % 4) + i % 2;
        piece.at(Swapped ? n : m, Swapped ? m : n) = acc[p * (kPiece / 2) + 4 * j + i];
      }
    }
    __syncwarp();
    const int first = col + p * kPiece;
    if constexpr (Swapped) {
      store_piece(piece, epilogue, args, args.n, args.m, batch, first, row);
    } else {
      store_piece(piece, epilogue, args, args.m, args.n, batch, row, first);
    }
  }
}

}  // namespace heddle::tile::sm90
