// The matrix instruction of a warpgroup: D (64 x N, registers) += A (64 x 32 bytes of k) B (N x 32 bytes of k), both
// from shared memory through descriptors. Lane l of warp w holds, in d[4 * j + 2 * h + c], row 16 * w + l / 4 + 8 * h
// and column 8 * j + 2 * (l % 4) + c.
#pragma once

#include "tile/arch/sm90/descriptor.h"

namespace heddle::tile::sm90 {

// Before the first instruction that touches registers written by other code.
__device__ inline void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Until all but the last Pending groups are done.
template <int Pending>
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}
// Keeps the compiler from moving uses of accumulators across this point.
__device__ inline void pin(float& x) {
  asm volatile("" : "+f"(x)::"memory");
}
__device__ inline void pin(int32_t& x) {
  asm volatile("" : "+r"(x)::"memory");
}

// Wgmma<In, N>::issue<MnA, MnB>(d, a, b, accumulate): MnA, MnB: the operand is contiguous along m or n instead of k
// (16-bit types only); accumulate = 0 overwrites d.
template <typename In, int N>
struct Wgmma;

// clang-format off
#define HEDDLE_R0 "%0, %1, %2, %3, %4, %5, %6, %7"
#define HEDDLE_R1 "%8, %9, %10, %11, %12, %13, %14, %15"
#define HEDDLE_R2 "%16, %17, %18, %19, %20, %21, %22, %23"
#define HEDDLE_R3 "%24, %25, %26, %27, %28, %29, %30, %31"
#define HEDDLE_R4 "%32, %33, %34, %35, %36, %37, %38, %39"
#define HEDDLE_R5 "%40, %41, %42, %43, %44, %45, %46, %47"
#define HEDDLE_R6 "%48, %49, %50, %51, %52, %53, %54, %55"
#define HEDDLE_R7 "%56, %57, %58, %59, %60, %61, %62, %63"
#define HEDDLE_R8 "%64, %65, %66, %67, %68, %69, %70, %71"
#define HEDDLE_R9 "%72, %73, %74, %75, %76, %77, %78, %79"
#define HEDDLE_R10 "%80, %81, %82, %83, %84, %85, %86, %87"
#define HEDDLE_R11 "%88, %89, %90, %91, %92, %93, %94, %95"
#define HEDDLE_R12 "%96, %97, %98, %99, %100, %101, %102, %103"
#define HEDDLE_R13 "%104, %105, %106, %107, %108, %109, %110, %111"
#define HEDDLE_R14 "%112, %113, %114, %115, %116, %117, %118, %119"
#define HEDDLE_R15 "%120, %121, %122, %123, %124, %125, %126, %127"
#define HEDDLE_H8 "%64, %65, %66, %67"
#define HEDDLE_H9 "%72, %73, %74, %75"
#define HEDDLE_H10 "%80, %81, %82, %83"
#define HEDDLE_H11 "%88, %89, %90, %91"
#define HEDDLE_O(c, i) c(d[8*i]), c(d[8*i+1]), c(d[8*i+2]), c(d[8*i+3]), c(d[8*i+4]), c(d[8*i+5]), c(d[8*i+6]), c(d[8*i+7])
#define HEDDLE_P(c, i) c(d[8*i]), c(d[8*i+1]), c(d[8*i+2]), c(d[8*i+3])
#define HEDDLE_REGS_16 HEDDLE_R0
#define HEDDLE_OUT_16(c) HEDDLE_O(c, 0)
#define HEDDLE_REGS_32 HEDDLE_REGS_16 ", " HEDDLE_R1
#define HEDDLE_OUT_32(c) HEDDLE_OUT_16(c), HEDDLE_O(c, 1)
#define HEDDLE_REGS_48 HEDDLE_REGS_32 ", " HEDDLE_R2
#define HEDDLE_OUT_48(c) HEDDLE_OUT_32(c), HEDDLE_O(c, 2)
#define HEDDLE_REGS_64 HEDDLE_REGS_48 ", " HEDDLE_R3
#define HEDDLE_OUT_64(c) HEDDLE_OUT_48(c), HEDDLE_O(c, 3)
#define HEDDLE_REGS_80 HEDDLE_REGS_64 ", " HEDDLE_R4
#define HEDDLE_OUT_80(c) HEDDLE_OUT_64(c), HEDDLE_O(c, 4)
#define HEDDLE_REGS_96 HEDDLE_REGS_80 ", " HEDDLE_R5
#define HEDDLE_OUT_96(c) HEDDLE_OUT_80(c), HEDDLE_O(c, 5)
#define HEDDLE_REGS_112 HEDDLE_REGS_96 ", " HEDDLE_R6
#define HEDDLE_OUT_112(c) HEDDLE_OUT_96(c), HEDDLE_O(c, 6)
#define HEDDLE_REGS_128 HEDDLE_REGS_112 ", " HEDDLE_R7
#define HEDDLE_OUT_128(c) HEDDLE_OUT_112(c), HEDDLE_O(c, 7)
#define HEDDLE_REGS_136 HEDDLE_REGS_128 ", " HEDDLE_H8
#define HEDDLE_OUT_136(c) HEDDLE_OUT_128(c), HEDDLE_P(c, 8)
#define HEDDLE_REGS_144 HEDDLE_REGS_128 ", " HEDDLE_R8
#define HEDDLE_OUT_144(c) HEDDLE_OUT_128(c), HEDDLE_O(c, 8)
#define HEDDLE_REGS_152 HEDDLE_REGS_144 ", " HEDDLE_H9
#define HEDDLE_OUT_152(c) HEDDLE_OUT_144(c), HEDDLE_P(c, 9)
#define HEDDLE_REGS_160 HEDDLE_REGS_144 ", " HEDDLE_R9
#define HEDDLE_OUT_160(c) HEDDLE_OUT_144(c), HEDDLE_O(c, 9)
#define HEDDLE_REGS_168 HEDDLE_REGS_160 ", " HEDDLE_H10
#define HEDDLE_OUT_168(c) HEDDLE_OUT_160(c), HEDDLE_P(c, 10)
#define HEDDLE_REGS_176 HEDDLE_REGS_160 ", " HEDDLE_R10
#define HEDDLE_OUT_176(c) HEDDLE_OUT_160(c), HEDDLE_O(c, 10)
#define HEDDLE_REGS_184 HEDDLE_REGS_176 ", " HEDDLE_H11
#define HEDDLE_OUT_184(c) HEDDLE_OUT_176(c), HEDDLE_P(c, 11)
#define HEDDLE_REGS_192 HEDDLE_REGS_176 ", " HEDDLE_R11
#define HEDDLE_OUT_192(c) HEDDLE_OUT_176(c), HEDDLE_O(c, 11)
#define HEDDLE_REGS_208 HEDDLE_REGS_192 ", " HEDDLE_R12
#define HEDDLE_OUT_208(c) HEDDLE_OUT_192(c), HEDDLE_O(c, 12)
#define HEDDLE_REGS_224 HEDDLE_REGS_208 ", " HEDDLE_R13
#define HEDDLE_OUT_224(c) HEDDLE_OUT_208(c), HEDDLE_O(c, 13)
#define HEDDLE_REGS_240 HEDDLE_REGS_224 ", " HEDDLE_R14
#define HEDDLE_OUT_240(c) HEDDLE_OUT_224(c), HEDDLE_O(c, 14)
#define HEDDLE_REGS_256 HEDDLE_REGS_240 ", " HEDDLE_R15
#define HEDDLE_OUT_256(c) HEDDLE_OUT_240(c), HEDDLE_O(c, 15)

// A, B, P, TA, TB: the numbers of the operands after the accumulators.
#define HEDDLE_WGMMA_16(IN, PTX, N, A, B, P, TA, TB)                                                            \
  template <>                                                                                                   \
  struct Wgmma<IN, N> {                                                                                         \
    template <bool MnA, bool MnB>                                                                               \
    __device__ static void issue(float (&d)[N / 2], uint64_t a, uint64_t b, int accumulate) {                   \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " P ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N            \
                   "k16.f32." PTX " {" HEDDLE_REGS_##N "}, " A ", " B ", p, 1, 1, " TA ", " TB ";\n}"            \
                   : HEDDLE_OUT_##N("+f") : "l"(a), "l"(b), "r"(accumulate), "n"(int(MnA)), "n"(int(MnB)));     \
    }                                                                                                           \
  };
#define HEDDLE_WGMMA_K(IN, SHAPE, ACC, CONSTRAINT, SCALE, N, A, B, P)                                           \
  template <>                                                                                                   \
  struct Wgmma<IN, N> {                                                                                         \
    template <bool MnA, bool MnB>                                                                               \
    __device__ static void issue(ACC (&d)[N / 2], uint64_t a, uint64_t b, int accumulate) {                     \
      static_assert(!MnA && !MnB, "the tensor cores read this type along k only");                              \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " P ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N SHAPE      \
                   " {" HEDDLE_REGS_##N "}, " A ", " B ", p" SCALE ";\n}"                                       \
                   : HEDDLE_OUT_##N(CONSTRAINT) : "l"(a), "l"(b), "r"(accumulate));                             \
    }                                                                                                           \
  };
#define HEDDLE_WGMMA_F(N, A, B, P, TA, TB)                                         \
  HEDDLE_WGMMA_16(half, "f16.f16", N, A, B, P, TA, TB)                             \
  HEDDLE_WGMMA_16(bfloat, "bf16.bf16", N, A, B, P, TA, TB)                         \
  HEDDLE_WGMMA_K(tf32, "k8.f32.tf32.tf32", float, "+f", ", 1, 1", N, A, B, P)      \
  HEDDLE_WGMMA_K(e4m3, "k32.f32.e4m3.e4m3", float, "+f", ", 1, 1", N, A, B, P)     \
  HEDDLE_WGMMA_K(e5m2, "k32.f32.e5m2.e5m2", float, "+f", ", 1, 1", N, A, B, P)
#define HEDDLE_WGMMA_I(N, A, B, P) HEDDLE_WGMMA_K(int8_t, "k32.s32.s8.s8", int32_t, "+r", "", N, A, B, P)

HEDDLE_WGMMA_F(16, "%8", "%9", "%10", "%11", "%12")
HEDDLE_WGMMA_F(32, "%16", "%17", "%18", "%19", "%20")
HEDDLE_WGMMA_F(48, "%24", "%25", "%26", "%27", "%28")
HEDDLE_WGMMA_F(64, "%32", "%33", "%34", "%35", "%36")
HEDDLE_WGMMA_F(80, "%40", "%41", "%42", "%43", "%44")
HEDDLE_WGMMA_F(96, "%48", "%49", "%50", "%51", "%52")
HEDDLE_WGMMA_F(112, "%56", "%57", "%58", "%59", "%60")
HEDDLE_WGMMA_F(128, "%64", "%65", "%66", "%67", "%68")
HEDDLE_WGMMA_F(136, "%68", "%69", "%70", "%71", "%72")
HEDDLE_WGMMA_F(144, "%72", "%73", "%74", "%75", "%76")
HEDDLE_WGMMA_F(152, "%76", "%77", "%78", "%79", "%80")
HEDDLE_WGMMA_F(160, "%80", "%81", "%82", "%83", "%84")
HEDDLE_WGMMA_F(168, "%84", "%85", "%86", "%87", "%88")
HEDDLE_WGMMA_F(176, "%88", "%89", "%90", "%91", "%92")
HEDDLE_WGMMA_F(184, "%92", "%93", "%94", "%95", "%96")
HEDDLE_WGMMA_F(192, "%96", "%97", "%98", "%99", "%100")
HEDDLE_WGMMA_F(208, "%104", "%105", "%106", "%107", "%108")
HEDDLE_WGMMA_F(224, "%112", "%113", "%114", "%115", "%116")
HEDDLE_WGMMA_F(240, "%120", "%121", "%122", "%123", "%124")
HEDDLE_WGMMA_F(256, "%128", "%129", "%130", "%131", "%132")
// The integer instruction has fewer widths.
HEDDLE_WGMMA_I(16, "%8", "%9", "%10")
HEDDLE_WGMMA_I(32, "%16", "%17", "%18")
HEDDLE_WGMMA_I(48, "%24", "%25", "%26")
HEDDLE_WGMMA_I(64, "%32", "%33", "%34")
HEDDLE_WGMMA_I(80, "%40", "%41", "%42")
HEDDLE_WGMMA_I(96, "%48", "%49", "%50")
HEDDLE_WGMMA_I(112, "%56", "%57", "%58")
HEDDLE_WGMMA_I(128, "%64", "%65", "%66")
HEDDLE_WGMMA_I(144, "%72", "%73", "%74")
HEDDLE_WGMMA_I(160, "%80", "%81", "%82")
HEDDLE_WGMMA_I(176, "%88", "%89", "%90")
HEDDLE_WGMMA_I(192, "%96", "%97", "%98")
HEDDLE_WGMMA_I(208, "%104", "%105", "%106")
HEDDLE_WGMMA_I(224, "%112", "%113", "%114")
HEDDLE_WGMMA_I(240, "%120", "%121", "%122")
HEDDLE_WGMMA_I(256, "%128", "%129", "%130")

#undef HEDDLE_R0
#undef HEDDLE_R1
#undef HEDDLE_R2
#undef HEDDLE_R3
#undef HEDDLE_R4
#undef HEDDLE_R5
#undef HEDDLE_R6
#undef HEDDLE_R7
#undef HEDDLE_R8
#undef HEDDLE_R9
#undef HEDDLE_R10
#undef HEDDLE_R11
#undef HEDDLE_R12
#undef HEDDLE_R13
#undef HEDDLE_R14
#undef HEDDLE_R15
#undef HEDDLE_H8
#undef HEDDLE_H9
#undef HEDDLE_H10
#undef HEDDLE_H11
#undef HEDDLE_O
#undef HEDDLE_P
#undef HEDDLE_REGS_16
#undef HEDDLE_OUT_16
#undef HEDDLE_REGS_32
#undef HEDDLE_OUT_32
#undef HEDDLE_REGS_48
#undef HEDDLE_OUT_48
#undef HEDDLE_REGS_64
#undef HEDDLE_OUT_64
#undef HEDDLE_REGS_80
#undef HEDDLE_OUT_80
#undef HEDDLE_REGS_96
#undef HEDDLE_OUT_96
#undef HEDDLE_REGS_112
#undef HEDDLE_OUT_112
#undef HEDDLE_REGS_128
#undef HEDDLE_OUT_128
#undef HEDDLE_REGS_136
#undef HEDDLE_OUT_136
#undef HEDDLE_REGS_144
#undef HEDDLE_OUT_144
#undef HEDDLE_REGS_152
#undef HEDDLE_OUT_152
#undef HEDDLE_REGS_160
#undef HEDDLE_OUT_160
#undef HEDDLE_REGS_168
#undef HEDDLE_OUT_168
#undef HEDDLE_REGS_176
#undef HEDDLE_OUT_176
#undef HEDDLE_REGS_184
#undef HEDDLE_OUT_184
#undef HEDDLE_REGS_192
#undef HEDDLE_OUT_192
#undef HEDDLE_REGS_208
#undef HEDDLE_OUT_208
#undef HEDDLE_REGS_224
#undef HEDDLE_OUT_224
#undef HEDDLE_REGS_240
#undef HEDDLE_OUT_240
#undef HEDDLE_REGS_256
#undef HEDDLE_OUT_256
#undef HEDDLE_WGMMA_16
#undef HEDDLE_WGMMA_K
#undef HEDDLE_WGMMA_F
#undef HEDDLE_WGMMA_I
// clang-format on

}  // namespace heddle::tile::sm90
