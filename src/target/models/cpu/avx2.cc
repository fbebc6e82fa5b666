// A machine with AVX2: nothing was measured on one. Its numbers are those of the Zen 4: cycles are counted for a vector
// whatever its width, and formulas count vectors, and the doublings within one, by the lanes of the target.
#include "target/cpu_model.h"

namespace heddle {

const KnownCpu& avx2_cpu() {
  static const KnownCpu cpu = {.name = "AVX2 machine", .isa = CpuIsa::kAvx2, .model = avx512_cpu().model};
  return cpu;
}

}  // namespace heddle
