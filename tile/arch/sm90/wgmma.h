// The matrix instruction of a warpgroup: D += A B. D has 64 x N accumulators in registers. A has 64 rows and B has N
// rows, each with 32 bytes along k; both are read from shared memory through descriptors. Element d[4 * j + 2 * h + c]
// of lane l of warp w is in row 16 * w + l / 4 + 8 * h and column 8 * j + 2 * (l % 4) + c of D.
#pragma once

#include "tile/arch/sm90/descriptor.h"

namespace heddle::tile::sm90 {

// Required before the first matrix instruction that accesses registers written by other code.
__device__ inline void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until all groups except the last `Pending` ones have completed.
template <int Pending>
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}
// Keeps the compiler from moving uses of accumulators across this point.
__device__ inline void fence_operand(float& x) {
  asm volatile("" : "+f"(x)::"memory");
}
__device__ inline void fence_operand(int32_t& x) {
  asm volatile("" : "+r"(x)::"memory");
}
__device__ inline void fence_operand(uint32_t& x) {
  asm volatile("" : "+r"(x)::"memory");
}

// Wgmma<In, N>::issue<MnA, MnB>(d, a, b, accumulate) issues the instruction for descriptors a and b. With uint8_t, A is
// unsigned and B is signed. MnA: A is
// contiguous along m instead of k. MnB: B is contiguous along n instead of k. MnA and MnB may be true only for 16-bit
// types. With accumulate = 0, the instruction overwrites d.
template <typename In, int N>
struct Wgmma;

// clang-format off
#include "tile/arch/sm90/wgmma_lists.h"
// A, B, P, TA, TB: the placeholders ("%8") of the assembly operands that follow the accumulators.
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
#define HEDDLE_WGMMA_I(N, A, B, P)                                           \
  HEDDLE_WGMMA_K(int8_t, "k32.s32.s8.s8", int32_t, "+r", "", N, A, B, P)     \
  HEDDLE_WGMMA_K(uint8_t, "k32.s32.u8.s8", int32_t, "+r", "", N, A, B, P)

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
// The integer instruction supports fewer values of N.
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

#undef HEDDLE_WGMMA_16
#undef HEDDLE_WGMMA_K
#undef HEDDLE_WGMMA_F
#undef HEDDLE_WGMMA_I
#include "tile/arch/sm90/wgmma_lists_end.h"
// clang-format on

}  // namespace heddle::tile::sm90
