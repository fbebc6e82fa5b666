// The second kernel of a split-k GEMM. It adds the parts in a fixed order, so that the result does not depend on the
// order in which blocks finish.
#pragma once

#include "tile/core/cuda_gemm.h"
#include "tile/kernel/cuda/gemm/fragments_to_rows.h"

namespace heddle::tile::cuda {

// Adds every Step-th part of n neighbouring elements in order, starting with part `first`. Rows of partial sums are
// aligned to 16 bytes.
template <int Step, typename Acc, int W>
__device__ inline void sum_parts(Acc (&sums)[W], const GemmReduceArgs& args, const Acc* from, int n, int first) {
  if (n == W) {
#pragma unroll 8
    for (int split = first; split < args.splits; split += Step) {
      struct alignas(16) Four {
        Acc x[W];
      };
      const Four part = *reinterpret_cast<const Four*>(from + split * args.p_split);
#pragma unroll
      for (int c = 0; c < W; ++c) sums[c] += part.x[c];
    }
  } else {  // elements beyond the last column were not written
#pragma unroll 8
    for (int split = first; split < args.splits; split += Step) {
#pragma unroll
      for (int c = 0; c < W - 1; ++c) {
        if (c < n) sums[c] += from[split * args.p_split + c];
      }
    }
  }
}

// Adds all parts. If `shared`, the parts are divided among the lanes of a warp, and the first lane gets the sums.
template <typename Acc, int W>
__device__ inline void sum_all_parts(Acc (&sums)[W], const GemmReduceArgs& args, const Acc* from, int n, bool shared,
                                     int lane) {
  if (!shared) return sum_parts<1>(sums, args, from, n, 0);
  sum_parts<kGemmReduceLanes>(sums, args, from, n, lane);
#pragma unroll
  for (int distance = kGemmReduceLanes / 2; distance > 0; distance /= 2) {
#pragma unroll
    for (int c = 0; c < W; ++c) sums[c] += __shfl_xor_sync(0xffffffffu, sums[c], distance);
  }
}

// Adds the parts of k in order and applies the epilogue. Each group of 4 columns is processed by `args.lanes` threads,
// in a grid-stride loop. If there are many parts, they are divided among several lanes, because a single thread would
// wait for one load after another.
template <typename Acc, typename Epilogue>
__device__ inline void gemm_reduce(const GemmReduceArgs& args, const Epilogue& epilogue) {
  constexpr int W = 4, kPair = kColumnsOfPair<Epilogue>;
  const bool shared = args.lanes > 1;
  const int64_t thread = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  const int64_t threads = gridDim.x * static_cast<int64_t>(blockDim.x);
  const int lane = shared ? static_cast<int>(threadIdx.x) % kGemmReduceLanes : 0;
  const int columns = args.columns / kPair;
  const int64_t groups = (columns + W - 1) / W, count = groups * args.rows * args.batch;
  const int64_t step = shared ? threads / kGemmReduceLanes : threads;
  for (int64_t i = shared ? thread / kGemmReduceLanes : thread; i < count; i += step) {
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
      const Acc* first = from + gemm_gate_column(col);
      Acc others[W] = {};
      sum_all_parts(sums, args, first, n, shared, lane);
      sum_all_parts(others, args, first + kGemmGateColumns, n, shared, lane);
      if (shared && lane != 0) continue;
      epilogue.gate(sums, others, batch, row, col, n);
    } else {
      sum_all_parts(sums, args, from + col, n, shared, lane);
      if (shared && lane != 0) continue;
    }
    epilogue(sums, batch, row, col, n);
  }
}

}  // namespace heddle::tile::cuda
