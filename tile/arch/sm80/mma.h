// The matrix instruction of a warp: D (16 x 8) += A (16 x 32 bytes of k) B (32 bytes of k x 8). All operands are in
// registers. The layout is the same for every type. A word has 4 bytes and holds 4 / sizeof(In) neighbours along k, the
// first neighbour in the low bits. With g = lane / 4 and t = lane % 4, a lane holds
//   a[0], a[1]  word t along k of rows g and g + 8
//   a[2], a[3]  word t + 4 along k of rows g and g + 8
//   b[0], b[1]  words t and t + 4 along k of column g
//   d[0], d[1]  columns 2t and 2t + 1 of row g
//   d[2], d[3]  columns 2t and 2t + 1 of row g + 8
#pragma once

#include "tile/arch/sm80/convert.h"

namespace heddle::tile::sm80 {

// Mma<A, B>::issue(d, a, b) for half, bfloat, cuda::tf32, any combination of int8_t and uint8_t, and, from sm_89 on,
// cuda::e4m3 and cuda::e5m2. Sums are float; sums of integers are int32_t and wrap. kK is the number of elements of k
// per instruction.
template <typename A, typename B = A>
struct Mma;

// clang-format off
#define HEDDLE_MMA(A, B, K, ACC, CONSTRAINT, PTX)                                                                 \
  template <>                                                                                                     \
  struct Mma<A, B> {                                                                                              \
    using Acc = ACC;                                                                                              \
    static constexpr int kK = K;                                                                                  \
    __device__ static void issue(ACC (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {                   \
      asm("mma.sync.aligned.m16n8k" PTX " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "                \
                   "{%0, %1, %2, %3};"                                                                            \
                   : CONSTRAINT(d[0]), CONSTRAINT(d[1]), CONSTRAINT(d[2]), CONSTRAINT(d[3])                       \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                           \
    }                                                                                                             \
  };
HEDDLE_MMA(half, half, 16, float, "+f", "16.row.col.f32.f16.f16.f32")
HEDDLE_MMA(bfloat, bfloat, 16, float, "+f", "16.row.col.f32.bf16.bf16.f32")
HEDDLE_MMA(cuda::tf32, cuda::tf32, 8, float, "+f", "8.row.col.f32.tf32.tf32.f32")
HEDDLE_MMA(cuda::e4m3, cuda::e4m3, 32, float, "+f", "32.row.col.f32.e4m3.e4m3.f32")
HEDDLE_MMA(cuda::e5m2, cuda::e5m2, 32, float, "+f", "32.row.col.f32.e5m2.e5m2.f32")
HEDDLE_MMA(int8_t, int8_t, 32, int32_t, "+r", "32.row.col.s32.s8.s8.s32")
HEDDLE_MMA(int8_t, uint8_t, 32, int32_t, "+r", "32.row.col.s32.s8.u8.s32")
HEDDLE_MMA(uint8_t, int8_t, 32, int32_t, "+r", "32.row.col.s32.u8.s8.s32")
HEDDLE_MMA(uint8_t, uint8_t, 32, int32_t, "+r", "32.row.col.s32.u8.u8.s32")
#undef HEDDLE_MMA
// clang-format on

}  // namespace heddle::tile::sm80
