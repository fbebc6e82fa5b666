// AMD Radeon RX 7900 XTX: its data sheet, and "RDNA 3 Instruction Set Architecture" for LDS and registers.
#include "target/hip_model.h"

namespace heddle {

const HipChip& rx7900xtx() {
  static const HipChip chip =
      with_scaled_model({.name = "AMD Radeon RX 7900 XTX",
                         .architecture = "gfx1100",
                         .facts = {.sms = 96, .boost_ghz = 2.5, .memory_tbps = 0.96, .tensor_per_cycle = 256},
                         .lanes = 32,
                         .mfma = false,
                         .memory_bytes = int64_t{24} << 30,
                         .lds_bytes = 64 << 10,
                         .l2_bytes = int64_t{6} << 20,
                         .registers = 2 * 1536 * 32});
  return chip;
}

}  // namespace heddle
