// The second kernel of a split-k GEMM. It adds the parts in a fixed order, so that the result does not depend on the
// order in which blocks finish.
#pragma once

#include "tile/core/cuda_gemm.h"
#include "tile/kernel/cuda/gemm/fragments_to_rows.h"

namespace heddle::tile::cuda {

// Adds the parts first, first + step, ... of W or, unless Whole, of n neighbouring elements in order. The loads of a
// batch of parts overlap, also of a last batch that is not full: otherwise each of its parts would cost a latency. Rows
// of partial sums are aligned to 16 bytes.
template <bool Whole, typename Acc, int W>
__device__ inline void sum_parts(Acc (&sums)[W], const GemmReduceArgs& args, const Acc* from, int n, int first,
                                 int step) {
  constexpr int kBatch = 8;
  struct alignas(16) Piece {
    Acc x[W];
  };
#pragma unroll 1
  for (int split = first; split < args.splits; split += kBatch * step) {
    Piece parts[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const bool wanted = split + i * step < args.splits;
      const Acc* part = from + (split + i * step) * args.p_split;
      parts[i] = Piece{};
      if constexpr (Whole) {
        if (wanted) parts[i] = *reinterpret_cast<const Piece*>(part);
      } else {  // elements beyond the last column were not written
#pragma unroll
        for (int c = 0; c < W - 1; ++c) {
          if (wanted && c < n) parts[i].x[c] = part[c];
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
#pragma unroll
      for (int c = 0; c < W; ++c) sums[c] += parts[i].x[c];
    }
  }
}

// Adds all parts. They are divided among `args.lanes` lanes of a warp, of which the first, `lane` 0, gets the sums.
// Lanes of the same parts are neighbours, so that they read neighbouring columns.
template <typename Acc, int W>
__device__ inline void sum_all_parts(Acc (&sums)[W], const GemmReduceArgs& args, const Acc* from, int n, int lane) {
  if (n == W) {
    sum_parts<true>(sums, args, from, n, lane, args.lanes);
  } else {
    sum_parts<false>(sums, args, from, n, lane, args.lanes);
  }
  for (int lanes = args.lanes / 2; lanes > 0; lanes /= 2) {
#pragma unroll
    for (int c = 0; c < W; ++c) sums[c] += __shfl_xor_sync(0xffffffffu, sums[c], lanes * (32 / args.lanes));
  }
}

// Adds the parts of k in order and applies the epilogue. Each group of 4 columns is processed by `args.lanes` lanes of
// a warp, in a grid-stride loop: a single thread would wait for one batch of parts after another.
template <typename Acc, typename Epilogue>
__device__ inline void gemm_reduce(const GemmReduceArgs& args, const Epilogue& epilogue) {
  constexpr int W = 4, kPair = kColumnsOfPair<Epilogue>;
  const int together = 32 / args.lanes;  // groups of a warp
  const int64_t warp = (blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x) / 32;
  const int64_t step = gridDim.x * static_cast<int64_t>(blockDim.x) / args.lanes;
  const int lane = static_cast<int>(threadIdx.x) % 32 / together;
  const int columns = args.columns / kPair;
  const int64_t groups = (columns + W - 1) / W, count = groups * args.rows * args.batch;
  for (int64_t first = warp * together; first < count; first += step) {  // all lanes of a warp take part in shuffles
    const int64_t mine = first + static_cast<int>(threadIdx.x) % together, i = mine < count ? mine : count - 1;
    int64_t line = 0;
    int batch = 0;
    if (count <= 0x7fffffff) {  // 64-bit divisions take three times as long
      line = static_cast<uint32_t>(i) / static_cast<uint32_t>(groups);
      batch = static_cast<int>(static_cast<uint32_t>(line) / static_cast<uint32_t>(args.rows));
    } else {
      line = i / groups;
      batch = static_cast<int>(line / args.rows);
    }
    const int col = static_cast<int>(i - line * groups) * W, row = static_cast<int>(line - int64_t(batch) * args.rows);
    const int n = columns - col < W ? columns - col : W;
    const Acc* from = static_cast<const Acc*>(args.partial) + batch * args.p_batch + row * args.p_row;
    Acc sums[W] = {};
    if constexpr (kPair == 2) {
      const Acc* pair = from + gemm_gate_column(col);
      Acc others[W] = {};
      sum_all_parts(sums, args, pair, n, lane);
      sum_all_parts(others, args, pair + kGemmGateColumns, n, lane);
      if (lane != 0 || mine >= count) continue;
      epilogue.gate(sums, others, batch, row, col, n);
    } else {
      sum_all_parts(sums, args, from + col, n, lane);
      if (lane != 0 || mine >= count) continue;
    }
    epilogue(sums, batch, row, col, n);
  }
}

}  // namespace heddle::tile::cuda
