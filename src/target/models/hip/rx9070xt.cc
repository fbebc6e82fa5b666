// AMD Radeon RX 9070 XT: its data sheet, and "RDNA 4 Instruction Set Architecture" for LDS and registers.
#include "target/hip_model.h"

namespace heddle {

const HipChip& rx9070xt() {
  static const HipChip chip =
      with_scaled_model({.name = "AMD Radeon RX 9070 XT",
                         .architecture = "gfx1201",
                         .facts = {.sms = 64, .boost_ghz = 2.97, .memory_tbps = 0.64, .tensor_per_cycle = 512},
                         .lanes = 32,
                         .mfma = false,
                         .memory_bytes = int64_t{16} << 30,
                         .lds_bytes = 64 << 10,
                         .l2_bytes = int64_t{8} << 20,
                         .registers = 2 * 1536 * 32});
  return chip;
}

}  // namespace heddle
