// The stores of a GEMM block for D of any alignment: either the epilogue stores D itself (store_epilogue), or it
// returns values of D (store_any_rows).
//
// A warp's accumulators pass through shared memory. A lane then gets 8 neighbouring elements of a row of D, the first
// of which is at a multiple of 8 elements in memory. However the rows of D are aligned, all accesses are thus whole
// vectors, except at the edges of a piece.
#pragma once

#include "tile/core/cuda_gemm.h"
#include "tile/core/types.h"
#include "tile/kernel/cuda/gemm/fragments_to_rows.h"
#include "tile/kernel/cuda/gemm/store.h"
#include "tile/kernel/cuda/operand/shifted.h"
#include "tile/kernel/cuda/row.h"

namespace heddle::tile::sm90 {

// A Rows x Columns piece of D, as accumulators in a warp's two staging buffers (4 KiB together).
template <int Rows, int Columns, typename Acc>
struct StagedPiece {
  static_assert(Rows * Columns * sizeof(Acc) <= 2 * kGemmStagingBytes && Columns % 8 == 0);
  Acc* buffer;

  // Groups of 8 columns are permuted differently in each row to avoid bank conflicts of fragments, which have 8 rows.
  __device__ Acc& at(int row, int column) const {
    constexpr int kGroups = Columns % 64 == 0 ? 8 : Columns % 32 == 0 ? 4 : Columns % 16 == 0 ? 2 : 1;
    return buffer[row * Columns + (column ^ (row % kGroups * 8))];
  }
};

// Passes a staged piece to the epilogue. The piece's first element is (row, column) of D. In each row, the groups of 8
// columns that begin at multiples of 8 elements in memory are passed as a whole; the columns before and after these
// groups are passed separately.
template <int Rows, int Columns, typename Acc, typename Epilogue>
__device__ inline void store_piece(const StagedPiece<Rows, Columns, Acc>& piece, const Epilogue& epilogue,
                                   const GemmArgs& args, int32_t rows, int32_t columns, int batch, int row,
                                   int column) {
  constexpr int W = kGemmNeighbours, kGroups = Columns / W;
  const int lane = threadIdx.x % 32;
  const bool shifts = columns % W != 0;  // if false, the epilogue expects 8 columns at each call
  if (!shifts) {
#pragma unroll 2
    for (int i = lane; i < Rows * kGroups; i += 32) {
      const int r = i / kGroups, c = i % kGroups * W;
      if (row + r >= rows || column + c >= columns) continue;
      Acc v[W];
      cuda::load_row<4>(v, &piece.at(r, c), W);
      epilogue(v, batch, row + r, column + c, W);
    }
    return;
  }
  const auto first_of = [&](int r) {
    return static_cast<int>(-(batch * args.d_batch + (row + r) * args.d_row + column) & (W - 1));
  };
  // First the groups of 8 columns, then the remainders at both ends of each row.
#pragma unroll 1
  for (int i = lane; i < Rows * (kGroups + 2); i += 32) {
    const bool whole = i < Rows * kGroups;
    const int edge = i - Rows * kGroups, r = whole ? i / kGroups : edge / 2;
    const int first = first_of(r);
    int c = first + i % kGroups * W, count = W;
    if (!whole) {
      c = edge % 2 == 0 ? 0 : Columns - W + first;
      count = first == 0 ? 0 : edge % 2 == 0 ? first : W - first;
    } else if (c + W > Columns) {
      count = 0;
    }
    const int left = columns - column - c, n = count < left ? count : left;
    if (row + r >= rows || n <= 0) continue;
    Acc v[W];
#pragma unroll
    for (int k = 0; k < W; ++k) v[k] = piece.at(r, c + k < Columns ? c + k : c);
    epilogue(v, batch, row + r, column + c, n);
  }
}

// Stores a warp's 16 x N elements of the product that the kernel computes, from (row, col) on. With swapped operands
// the product is the transpose of D, so these are 16 columns of D.
template <bool Swapped, int N, typename Acc, int Sums, typename Epilogue>
__device__ inline void store_epilogue(const Acc (&acc)[Sums], const Epilogue& epilogue, const GemmArgs& args,
                                      uint8_t* staging, int batch, int row, int col) {
  static_assert(Sums == N / 2 * cuda::kColumnsOfPair<Epilogue> && !(Swapped && cuda::Gates<Epilogue>::value));
  constexpr int kPiece = N % 64 == 0 ? 64 : N % 32 == 0 ? 32 : N % 16 == 0 ? 16 : 8;
  const int lane = threadIdx.x % 32;
  using Piece = StagedPiece<Swapped ? kPiece : 16, Swapped ? 16 : kPiece, Acc>;
  const Piece piece{reinterpret_cast<Acc*>(staging)};
#pragma unroll
  for (int p = 0; p < N / kPiece; ++p) {
    __syncwarp();  // the previous piece has been read
#pragma unroll
    for (int j = 0; j < kPiece / 8; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int m = lane / 4 + h * 8, n = 8 * j + 2 * (lane % 4);
        Acc v[2];
        take_pair(v, acc, p * (kPiece / 8) + j, h, epilogue, args, batch, row + m, col + p * kPiece + n);
#pragma unroll
        for (int i = 0; i < 2; ++i) piece.at(Swapped ? n + i : m, Swapped ? m : n + i) = v[i];
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

// Rows of D as bytes in a warp's two staging buffers (4 KiB together). Pieces of 16 bytes are permuted differently in
// each row.
template <int RowBytes, int Turn>
struct StagedRows {
  static constexpr int kChunks = RowBytes / 16, kMost = 2 * kGemmStagingBytes / RowBytes;
  static constexpr int kRows = RowBytes > 32 && kMost > 16 ? 16 : kMost;
  uint8_t* buffer;

  __device__ uint8_t* at(int row, int byte) const {
    return buffer + row * RowBytes + (byte ^ ((row * Turn) & (kChunks - 1)) * 16);
  }
  __device__ cuda::Chunk chunk(int row, int number) const {
    return *reinterpret_cast<const cuda::Chunk*>(at(row, number * 16));
  }
};

// Stores fewer than 16 bytes at the start or at the end of a row, in as few stores as their addresses allow. `to` is a
// multiple of 16, and `frame` holds the bytes for [to, to + 16). Stores the last `count` of these bytes if `last`,
// otherwise the first `count`.
template <int Size>
__device__ inline void write_edge(uint8_t* to, const cuda::Chunk& frame, int count, bool last) {
  const int eight = last ? 8 : 0, four = last ? 12 - (count & 8) : count & 8;
  if ((count & 8) != 0) {
    *reinterpret_cast<cuda::Neighbours<uint32_t, 2>*>(to + eight) = {
        {last ? frame.x[2] : frame.x[0], last ? frame.x[3] : frame.x[1]}};
  }
  if ((count & 4) != 0) {
    *reinterpret_cast<uint32_t*>(to + four) =
        four >= 8 ? (four == 12 ? frame.x[3] : frame.x[2]) : (four == 4 ? frame.x[1] : frame.x[0]);
  }
  if (Size == 2 && (count & 2) != 0) {
    const int two = last ? 16 - count : count & 12;
    const uint32_t word = two >= 8 ? (two >= 12 ? frame.x[3] : frame.x[2]) : (two >= 4 ? frame.x[1] : frame.x[0]);
    *reinterpret_cast<uint16_t*>(to + two) = static_cast<uint16_t>(last ? word >> 16 : word);
  }
}

// Writes `bytes` bytes of each of `rows` staged rows to memory at `to`. Rows in memory are `pitch` bytes apart.
template <typename Out, int RowBytes, int Turn>
__device__ inline void write_rows(const StagedRows<RowBytes, Turn>& staged, uint8_t* to, int64_t pitch, int rows,
                                  int bytes) {
  using Rows = StagedRows<RowBytes, Turn>;
  constexpr int kSize = sizeof(Out);
  const int lane = threadIdx.x % 32;
  const auto head_of = [&](const uint8_t* row) { return static_cast<int>(-reinterpret_cast<uint64_t>(row) & 15); };
  const auto moved = [&](int r, int chunk, int by) {
    const int next = chunk + 1 < Rows::kChunks ? chunk + 1 : chunk;
    return cuda::shifted(staged.chunk(r, chunk), staged.chunk(r, next), static_cast<uint32_t>(by));
  };
#pragma unroll 4
  for (int i = lane; i < Rows::kRows * Rows::kChunks; i += 32) {
    const int r = i / Rows::kChunks, chunk = i % Rows::kChunks;
    uint8_t* row = to + r * pitch;
    const int head = head_of(row), at = head + 16 * chunk;
    if (r < rows && at + 16 <= bytes) *reinterpret_cast<cuda::Chunk*>(row + at) = moved(r, chunk, head);
  }
  // The remainders at both ends of each row.
#pragma unroll 1
  for (int i = lane; i < 2 * rows; i += 32) {
    const int r = i / 2;
    uint8_t* row = to + r * pitch;
    const int head = head_of(row);
    if (bytes < head) {  // the whole row is within 16 bytes
      for (int at = i % 2 * kSize; at < bytes; at += 2 * kSize) {
        *reinterpret_cast<Out*>(row + at) = *reinterpret_cast<const Out*>(staged.at(r, at));
      }
      continue;
    }
    const bool first = i % 2 == 0;
    const int whole = (bytes - head) / 16, count = first ? head : bytes - head - 16 * whole;
    const int chunk = first || whole == Rows::kChunks ? 0 : whole;
    const cuda::Chunk low = staged.chunk(r, chunk);
    const cuda::Chunk high = staged.chunk(r, first ? 0 : chunk + 1 < Rows::kChunks ? chunk + 1 : chunk);
    write_edge<kSize>(row + head + (first ? -16 : 16 * whole), cuda::shifted(low, high, static_cast<uint32_t>(head)),
                      count, first);
  }
}

// Stores the values that the epilogue returns for a warp's 16 x N elements of the product that the kernel computes,
// from (row, col) on. With swapped operands the product is the transpose of D, so these are 16 columns of D.
template <bool Swapped, int N, typename Out, typename Acc, int Sums, typename Epilogue>
__device__ inline void store_any_rows(const Acc (&acc)[Sums], const Epilogue& epilogue, const GemmArgs& args,
                                      uint8_t* staging, int batch, int row, int col) {
  static_assert(Sums == N / 2 * cuda::kColumnsOfPair<Epilogue> && !(Swapped && cuda::Gates<Epilogue>::value));
  constexpr int kSize = sizeof(Out);
  constexpr int kRowBytes = Swapped ? 16 * kSize : N * kSize > 256 ? 512 : N * kSize > 128 ? 256 : 128;
  constexpr int kPiece = Swapped ? 128 : kRowBytes / kSize;      // columns of N per piece
  constexpr int kHalves = !Swapped && kRowBytes == 512 ? 2 : 1;  // if 2, a piece is staged 8 rows at a time
  static_assert(!Swapped || kSize == 2);
  using Value = epilogue_value_t<Acc, Out>;
  using Staged = StagedRows<kRowBytes, kSize / 2>;
  const Staged staged{staging};
  const int lane = threadIdx.x % 32;
  const auto within = [](int size, int left) { return left < 0 ? 0 : left < size ? left : size; };
#pragma unroll
  for (int step = 0; step < (N + kPiece - 1) / kPiece * kHalves; ++step) {
    const int p = step / kHalves, half = step % kHalves, first = col + p * kPiece;
    __syncwarp();  // the previous piece has been read
#pragma unroll
    for (int j = p * (kPiece / 8); j < N / 8 && j < (p + 1) * (kPiece / 8); ++j) {
#pragma unroll
      for (int h = half; h < (kHalves == 2 ? half + 1 : 2); ++h) {
        const int m = lane / 4 + 8 * h, n = 8 * j + 2 * (lane % 4), at = n - p * kPiece;
        Value v[2];
        take_pair(v, acc, j, h, epilogue, args, batch, row + m, col + n);
        apply_pair<Swapped>(v, epilogue, args, batch, row + m, col + n);
        const int line = m - half * 8;
        if constexpr (Swapped) {
          const uint32_t packed = pack<Out>(to_float(v[0]), to_float(v[1]));
          *reinterpret_cast<uint16_t*>(staged.at(at, m * kSize)) = static_cast<uint16_t>(packed);
          *reinterpret_cast<uint16_t*>(staged.at(at + 1, m * kSize)) = static_cast<uint16_t>(packed >> 16);
        } else if constexpr (kSize == 2) {
          *reinterpret_cast<uint32_t*>(staged.at(line, at * kSize)) = pack<Out>(to_float(v[0]), to_float(v[1]));
        } else {
          *reinterpret_cast<cuda::Neighbours<Out, 2>*>(staged.at(line, at * kSize)) = {
              {convert<Out>(v[0]), convert<Out>(v[1])}};
        }
      }
    }
    __syncwarp();
    const int inside = N - p * kPiece < kPiece ? N - p * kPiece : kPiece, top = row + half * 8;
    const int rows = Swapped ? within(inside, args.n - first) : within(16 / kHalves, args.m - top);
    const int columns = Swapped ? within(16, args.m - row) : within(inside, args.n - first);
    auto* to = static_cast<Out*>(args.d) + batch * args.d_batch;
    to += Swapped ? first * args.d_row + row : top * args.d_row + first;
    write_rows<Out>(staged, reinterpret_cast<uint8_t*>(to), args.d_row * kSize, rows, columns * kSize);
  }
}

}  // namespace heddle::tile::sm90
