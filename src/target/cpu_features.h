#pragma once

namespace heddle {

// Instruction sets that the processor has and whose registers the operating system saves.
struct CpuFeatures {
  bool avx2 = false;         // with FMA, F16C, BMI1 and BMI2
  bool avx512 = false;       // F, BW, DQ, VL and CD
  bool avx512_bf16 = false;  // is set with avx512 only
  bool avx512_vnni = false;  // is set with avx512 only
  bool zen = false;          // AMD's families 17h and 19h, Zen 1 to 4
};

// By the instruction CPUID: __builtin_cpu_supports() asks the run-time library of the compiler, and that of zig, which
// makes the wheels, says no to everything. All false where the machine is not x86-64.
const CpuFeatures& cpu_features();

}  // namespace heddle
