// Macros that list the accumulators of wgmma, as operands of inline assembly. HEDDLE_REGS_N names the registers for N
// columns; HEDDLE_OUT_N binds them to d[0..N/2). A header that includes this file includes wgmma_lists_end.h after the
// last use, so that this file can be included again.
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

// clang-format on
