// AMD Instinct MI300X: its data sheet, and "CDNA 3 Instruction Set Architecture" for LDS and registers. The L2 is that
// of eight dies.
#include "target/hip_model.h"

namespace heddle {

const HipChip& mi300x() {
  static const HipChip chip =
      with_scaled_model({.name = "AMD Instinct MI300X",
                         .architecture = "gfx942",
                         .facts = {.sms = 304, .boost_ghz = 2.1, .memory_tbps = 5.3, .tensor_per_cycle = 1024},
                         .lanes = 64,
                         .memory_bytes = int64_t{192} << 30,
                         .lds_bytes = 64 << 10,
                         .l2_bytes = int64_t{32} << 20,
                         .registers = 512 * 256});
  return chip;
}

}  // namespace heddle
