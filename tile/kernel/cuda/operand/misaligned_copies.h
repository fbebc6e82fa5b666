// Copies of a small operand, for a product with a large operand whose rows start at any address. TMA reads each row of
// the large operand from the preceding multiple of 16 bytes. Rows r and r + `classes` have the same offset from that
// multiple; they belong to the same class. For a tile of rows of one class, the small operand must be shifted along k
// by the offset of this class. There is therefore one copy of the small operand per class, padded with zeros on both
// sides.
#pragma once

#include "tile/arch/sm90/dependent.h"
#include "tile/core/cuda_gemm.h"
#include "tile/kernel/cuda/operand/shifted.h"

namespace heddle::tile {

// Each thread assembles kGemmRepackChunks pieces of 16 bytes. All of its reads are in flight at the same time. The
// product may start only after all blocks of this kernel have waited for the preceding kernel, because the product
// reads the large operand without another wait.
__device__ inline void gemm_misaligned_copies(const GemmClassCopiesArgs& args) {
  sm90::grid_dependency_wait();
  sm90::launch_dependents();
  const uint32_t first = blockIdx.x * (kGemmRepackThreads * kGemmRepackChunks) + threadIdx.x;
  const auto from = reinterpret_cast<uint64_t>(args.from);
  cuda::ShiftedChunk chunks[kGemmRepackChunks] = {};
  int32_t skips[kGemmRepackChunks] = {}, lefts[kGemmRepackChunks] = {};
#pragma unroll
  for (int i = 0; i < kGemmRepackChunks; ++i) {
    const uint32_t at = first + i * kGemmRepackThreads;
    if (at >= args.total) continue;
    const uint32_t line = at / args.chunks, chunk = at - line * args.chunks;
    const uint32_t number = line / args.rows, row = line - number * args.rows;
    const uint32_t skip = gemm_class_skip(args.skip, number, args.skip_step);
    const uint64_t begin = from + args.from_offset + row * args.from_row;
    // The bytes before the first row may be outside of the buffer, so they are not read.
    skips[i] = chunk == 0 ? static_cast<int32_t>(skip) : 0;
    lefts[i] = static_cast<int32_t>(args.bytes + skip) - static_cast<int32_t>(chunk * 16);
    chunks[i].fetch(chunk == 0 ? begin : begin + chunk * 16 - skip, from + args.end);
  }
#pragma unroll
  for (int i = 0; i < kGemmRepackChunks; ++i) {
    const uint32_t at = first + i * kGemmRepackThreads;
    if (at >= args.total) continue;
    cuda::Chunk value = chunks[i].value();
    if (skips[i] != 0) value = cuda::shifted(cuda::Chunk{}, value, 16 - static_cast<uint32_t>(skips[i]));
    static_cast<cuda::Chunk*>(args.to)[at] = cuda::before(value, lefts[i]);
  }
}

}  // namespace heddle::tile
