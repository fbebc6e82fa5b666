// Copies matrices at memory speed. Source rows may have any length and alignment; copied rows begin at multiples of 16
// bytes.
#pragma once

#include "tile/core/cuda_gemm.h"
#include "tile/kernel/cuda/operand/shifted.h"

namespace heddle::tile {

// Every thread copies kGemmRepackChunks pieces of 16 bytes, with all loads in flight at once. The padding after a
// copied row is undefined: it holds the bytes after the source row. The tensor map of the copy excludes the padding.
__device__ inline void gemm_repack(const GemmRepackArgs& args) {
  const bool second = blockIdx.x >= args.part[0].blocks;
  const GemmRepackPart& part = args.part[second ? 1 : 0];
  const uint32_t first =
      (blockIdx.x - (second ? args.part[0].blocks : 0)) * (kGemmRepackThreads * kGemmRepackChunks) + threadIdx.x;
  const auto from = reinterpret_cast<uint64_t>(part.from);
  uint8_t* to = static_cast<uint8_t*>(part.to) + part.to_offset;
  cuda::ShiftedChunk chunks[kGemmRepackChunks] = {};
#pragma unroll
  for (int i = 0; i < kGemmRepackChunks; ++i) {
    const uint32_t at = first + i * kGemmRepackThreads;
    if (at >= part.total) continue;
    const uint32_t line = at / part.chunks, column = at - line * part.chunks;
    const uint32_t batch = line / part.rows, row = line - batch * part.rows;
    const int64_t place = part.from_offset + batch * part.from_batch + row * part.from_row + int64_t{column} * 16;
    chunks[i].fetch(from + place, from + part.end);
  }
#pragma unroll
  for (int i = 0; i < kGemmRepackChunks; ++i) {
    const uint32_t at = first + i * kGemmRepackThreads;
    if (at < part.total) *reinterpret_cast<cuda::Chunk*>(to + int64_t{at} * 16) = chunks[i].value();
  }
}

}  // namespace heddle::tile
