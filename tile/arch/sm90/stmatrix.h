// Stores of matrix fragments.
#pragma once

#include <stdint.h>

namespace heddle::tile::sm90 {

// Stores four 8x8 matrices of 16-bit elements. With t = l % 4, lane l holds elements 2t and 2t + 1 of row l / 4 of each
// matrix. Lanes 8i .. 8i + 7 give the addresses of the rows (transposed: of the columns) of matrix i.
template <bool Transposed>
__device__ inline void store_matrices(uint32_t address, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  if constexpr (Transposed) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a),
                 "r"(b), "r"(c), "r"(d)
                 : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b),
                 "r"(c), "r"(d)
                 : "memory");
  }
}

// Stores two matrices; lanes 0 .. 15 give the addresses.
template <bool Transposed>
__device__ inline void store_matrices(uint32_t address, uint32_t a, uint32_t b) {
  if constexpr (Transposed) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(a), "r"(b)
                 : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(a), "r"(b) : "memory");
  }
}

}  // namespace heddle::tile::sm90
