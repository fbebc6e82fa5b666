// A Zen 4 with AVX-512: fitted to kernels that were measured on a thread of one (docs/design/cpu-rows.md).
#include "target/cpu_model.h"

namespace heddle {

const KnownCpu& avx512_cpu() {
  static const KnownCpu cpu = {.name = "Zen 4",
                               .isa = CpuIsa::kAvx512,
                               .model = {.task_us = 15,
                                         .read_over_copy = 1.25,
                                         .access_cycles = 2,
                                         .transpose_cycles = 4,
                                         .exchange_cycles = 2,
                                         .across_cycles = 8,
                                         .wait_cycles = 10,
                                         .light_step_cycles = 12,
                                         .select_cycles = 3,
                                         .micro_tile_cycles = 60,
                                         .pack_cycles = 4,
                                         .soften_cycles = 12}};
  return cpu;
}

}  // namespace heddle
