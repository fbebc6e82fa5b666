#pragma once

namespace heddle {

// Instruction sets that the processor supports and whose registers the operating system saves and restores.
struct CpuFeatures {
  bool avx2 = false;         // with FMA, F16C, BMI1 and BMI2
  bool avx512 = false;       // F, BW, DQ, VL and CD
  bool avx512_bf16 = false;  // only set together with avx512
  bool avx512_vnni = false;  // only set together with avx512
  bool amx = false;          // matrix products of bf16 and of bytes; only set together with both of the above
  bool zen = false;          // AMD's families 17h and 19h, Zen 1 to 4
};

// Returns the features of this machine, from CPUID. Does not use __builtin_cpu_supports(), because that function
// depends on the compiler's run-time library. The library of zig, which builds the wheels, reports no feature at all.
// On machines other than x86-64, all features are false.
const CpuFeatures& cpu_features();

}  // namespace heddle
