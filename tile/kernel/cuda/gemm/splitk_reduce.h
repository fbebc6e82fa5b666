// The second kernel of a GEMM whose k is split: adds the parts in order, so that the result does not depend on which
// block was first.
#pragma once

#include "tile/core/cuda_gemm.h"

namespace heddle::tile::cuda {

// Adds the parts of k in order, and applies the epilogue; one thread per 4 columns, grid-stride.
template <typename Acc, typename Epilogue>
__device__ inline void gemm_reduce(const GemmReduceArgs& args, const Epilogue& epilogue) {
  constexpr int W = 4;
  const int64_t groups = (args.columns + W - 1) / W, count = groups * args.rows * args.batch;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<int64_t>(gridDim.x) * blockDim.x) {
    int64_t line = 0;
    int batch = 0;
    if (count <= 0x7fffffff) {  // divisions of 64 bits take three times as long
      line = static_cast<uint32_t>(i) / static_cast<uint32_t>(groups);
      batch = static_cast<int>(static_cast<uint32_t>(line) / static_cast<uint32_t>(args.rows));
    } else {
      line = i / groups;
      batch = static_cast<int>(line / args.rows);
    }
    const int col = static_cast<int>(i - line * groups) * W, row = static_cast<int>(line - int64_t(batch) * args.rows);
    const int n = args.columns - col < W ? args.columns - col : W;
    const Acc* from = static_cast<const Acc*>(args.partial) + batch * args.p_batch + row * args.p_row + col;
    Acc sums[W] = {};
    if (n == W) {
#pragma unroll 8
      for (int split = 0; split < args.splits; ++split) {  // rows of partial sums are aligned to 16 bytes
        struct alignas(16) Four {
          Acc x[W];
        };
        const Four part = *reinterpret_cast<const Four*>(from + split * args.p_split);
#pragma unroll
        for (int c = 0; c < W; ++c) sums[c] += part.x[c];
      }
    } else {  // what lies behind the columns was not written
#pragma unroll 8
      for (int split = 0; split < args.splits; ++split) {
#pragma unroll
        for (int c = 0; c < W - 1; ++c) {
          if (c < n) sums[c] += from[split * args.p_split + c];
        }
      }
    }
    epilogue(sums, batch, row, col, n);
  }
}

}  // namespace heddle::tile::cuda
