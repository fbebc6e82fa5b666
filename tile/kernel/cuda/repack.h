// Copies a matrix with rows of any length and place to rows that start at multiples of 16 bytes.
#pragma once

#include "tile/core/cuda_gemm.h"

namespace heddle::tile {

// T: an unsigned integer of the element's size. What pads a row is left as it is: the tensor map ends before it.
template <typename T>
__device__ inline void gemm_repack(const GemmRepackArgs& args) {
  const T* from = static_cast<const T*>(args.from);
  T* to = reinterpret_cast<T*>(static_cast<uint8_t*>(args.to) + args.offset);
  const int64_t lines = args.rows * args.batch, pieces = (args.row + 255) / 256;
  for (int64_t i = blockIdx.x; i < lines * pieces; i += gridDim.x) {
    const int64_t line = i / pieces, column = (i - line * pieces) * 256 + threadIdx.x;
    const int64_t batch = line / args.rows, row = line - batch * args.rows;
    if (column < args.row) {
      to[batch * args.to_batch + row * args.to_row + column] =
          from[batch * args.from_batch + row * args.from_row + column];
    }
  }
}

}  // namespace heddle::tile
