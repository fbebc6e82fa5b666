// The matrix instruction of a warpgroup with A in registers: D (64 x N) += A (64 x 16) B (N x 16, in shared memory). A
// lane holds four words of A; each word has two neighbours along k. Word i is in row 16 * warp + lane / 4 + 8 * (i %
// 2). The k index of the word's first element is 2 * (lane % 4) + 8 * (i / 2). Packed accumulators of 16 columns have
// the same layout. The instruction may read the words until the warpgroup has waited for the instruction. For tf32, a
// word is one element, and word i has k = lane % 4 + 4 * (i / 2).
#pragma once

#include "tile/arch/sm90/wgmma.h"

namespace heddle::tile::sm90 {

// WgmmaRegisters<In, N>::issue<MnB>(d, a, b, accumulate) has the parameters of Wgmma<In, N>::issue, except that `a` is
// in registers. In: half, bfloat or tf32 (tf32 only without MnB).
template <typename In, int N>
struct WgmmaRegisters;

// clang-format off
#include "tile/arch/sm90/wgmma_lists.h"
// A0 to A3, B, P and TB are the numbers of the asm operands that follow the accumulators.
#define HEDDLE_WGMMA_A(IN, PTX, N, A0, A1, A2, A3, B, P, TB)                                                     \
  template <>                                                                                                   \
  struct WgmmaRegisters<IN, N> {                                                                                \
    template <bool MnB>                                                                                         \
    __device__ static void issue(float (&d)[N / 2], const uint32_t (&a)[4], uint64_t b, int accumulate) {       \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " P ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N            \
                   "k16.f32." PTX " {" HEDDLE_REGS_##N "}, {" A0 ", " A1 ", " A2 ", " A3 "}, " B                \
                   ", p, 1, 1, " TB ";\n}"                                                                      \
                   : HEDDLE_OUT_##N("+f")                                                                       \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(int(MnB)));       \
    }                                                                                                           \
  };
#define HEDDLE_WGMMA_T(N, A0, A1, A2, A3, B, P)                                                                  \
  template <>                                                                                                   \
  struct WgmmaRegisters<tf32, N> {                                                                              \
    template <bool MnB>                                                                                         \
    __device__ static void issue(float (&d)[N / 2], const uint32_t (&a)[4], uint64_t b, int accumulate) {       \
      static_assert(!MnB, "the tensor cores read this type along k only");                                      \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " P ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N            \
                   "k8.f32.tf32.tf32 {" HEDDLE_REGS_##N "}, {" A0 ", " A1 ", " A2 ", " A3 "}, " B               \
                   ", p, 1, 1;\n}"                                                                              \
                   : HEDDLE_OUT_##N("+f")                                                                       \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));                      \
    }                                                                                                           \
  };
#define HEDDLE_WGMMA_B(N, A0, A1, A2, A3, B, P, TB)                     \
  HEDDLE_WGMMA_A(half, "f16.f16", N, A0, A1, A2, A3, B, P, TB)          \
  HEDDLE_WGMMA_A(bfloat, "bf16.bf16", N, A0, A1, A2, A3, B, P, TB)      \
  HEDDLE_WGMMA_T(N, A0, A1, A2, A3, B, P)

HEDDLE_WGMMA_B(16, "%8", "%9", "%10", "%11", "%12", "%13", "%14")
HEDDLE_WGMMA_B(32, "%16", "%17", "%18", "%19", "%20", "%21", "%22")
HEDDLE_WGMMA_B(48, "%24", "%25", "%26", "%27", "%28", "%29", "%30")
HEDDLE_WGMMA_B(64, "%32", "%33", "%34", "%35", "%36", "%37", "%38")
HEDDLE_WGMMA_B(80, "%40", "%41", "%42", "%43", "%44", "%45", "%46")
HEDDLE_WGMMA_B(96, "%48", "%49", "%50", "%51", "%52", "%53", "%54")
HEDDLE_WGMMA_B(112, "%56", "%57", "%58", "%59", "%60", "%61", "%62")
HEDDLE_WGMMA_B(128, "%64", "%65", "%66", "%67", "%68", "%69", "%70")
HEDDLE_WGMMA_B(144, "%72", "%73", "%74", "%75", "%76", "%77", "%78")
HEDDLE_WGMMA_B(160, "%80", "%81", "%82", "%83", "%84", "%85", "%86")
HEDDLE_WGMMA_B(176, "%88", "%89", "%90", "%91", "%92", "%93", "%94")
HEDDLE_WGMMA_B(192, "%96", "%97", "%98", "%99", "%100", "%101", "%102")
HEDDLE_WGMMA_B(208, "%104", "%105", "%106", "%107", "%108", "%109", "%110")
HEDDLE_WGMMA_B(224, "%112", "%113", "%114", "%115", "%116", "%117", "%118")
HEDDLE_WGMMA_B(240, "%120", "%121", "%122", "%123", "%124", "%125", "%126")
HEDDLE_WGMMA_B(256, "%128", "%129", "%130", "%131", "%132", "%133", "%134")

#undef HEDDLE_WGMMA_A
#undef HEDDLE_WGMMA_T
#undef HEDDLE_WGMMA_B
#include "tile/arch/sm90/wgmma_lists_end.h"
// clang-format on

}  // namespace heddle::tile::sm90
