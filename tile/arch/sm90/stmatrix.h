// Stores of matrix fragments to shared memory (stmatrix).
#pragma once

#include <stdint.h>

namespace heddle::tile::sm90 {

// Stores four 8x8 matrices of 16-bit elements: a, b, c and d hold the fragments of matrices 0 to 3. With t = l % 4,
// lane l holds elements 2t and 2t + 1 of row l / 4 of each matrix. In lanes 8i to 8i + 7, `address` is the
// shared-memory address of a row of matrix i. If Transposed, it is the address of a column.
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

// Stores two 8x8 matrices; only the addresses of lanes 0 to 15 are used.
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
