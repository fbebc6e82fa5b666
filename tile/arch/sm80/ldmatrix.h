// Loads four 8x8 matrices of 16-bit elements from shared memory to registers. Lanes 8i .. 8i + 7 give the shared
// addresses of the rows of matrix i. A row has 16 bytes and is aligned to 16 bytes.
//
// With t = l % 4, lane l receives elements 2t and 2t + 1 of row l / 4 of matrix i in r[i], the first one in the low
// half. With `Transposed`, they are elements of column l / 4 instead. Without it, a matrix can also have 8x4 elements
// of 32 bits or 8x16 elements of 8 bits.
#pragma once

#include <stdint.h>

namespace heddle::tile::sm80 {

template <bool Transposed>
__device__ inline void load_matrices(uint32_t (&r)[4], uint32_t row) {
  if constexpr (Transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row)
                 : "memory");
  }
}

// Loads two matrices. Only the addresses of lanes 0 .. 15 are used.
template <bool Transposed>
__device__ inline void load_matrices(uint32_t (&r)[2], uint32_t row) {
  if constexpr (Transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(row)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(row)
                 : "memory");
  }
}

}  // namespace heddle::tile::sm80
