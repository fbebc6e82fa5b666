// AMD Instinct MI355X: its data sheet, and "CDNA 4 Architecture" for LDS and registers. The L2 is that of eight dies.
#include "target/hip_model.h"

namespace heddle {

const HipChip& mi355x() {
  static const HipChip chip =
      with_scaled_model({.name = "AMD Instinct MI355X",
                         .architecture = "gfx950",
                         .facts = {.sms = 256, .boost_ghz = 2.4, .memory_tbps = 8.0, .tensor_per_cycle = 2048},
                         .lanes = 64,
                         .memory_bytes = int64_t{288} << 30,
                         .lds_bytes = 160 << 10,
                         .l2_bytes = int64_t{32} << 20,
                         .registers = 512 * 256});
  return chip;
}

}  // namespace heddle
