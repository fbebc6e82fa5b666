// One of the two dies of an AMD Instinct MI250X: its data sheet, and "CDNA 2 Instruction Set Architecture" for LDS and
// registers.
#include "target/hip_model.h"

namespace heddle {

const HipChip& mi250x() {
  static const HipChip chip =
      with_scaled_model({.name = "AMD Instinct MI250X",
                         .architecture = "gfx90a",
                         .facts = {.sms = 110, .boost_ghz = 1.7, .memory_tbps = 1.638, .tensor_per_cycle = 512},
                         .lanes = 64,
                         .memory_bytes = int64_t{64} << 30,
                         .lds_bytes = 64 << 10,
                         .l2_bytes = int64_t{8} << 20,
                         .registers = 512 * 256});
  return chip;
}

}  // namespace heddle
