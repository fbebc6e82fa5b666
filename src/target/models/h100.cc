// NVIDIA H100 SXM, by its data sheet: nothing was measured on it.
#include "target/cuda_model.h"

namespace heddle {

const KnownChip& h100() {
  static const KnownChip chip = scaled_from_h200(
      "NVIDIA H100", 90, {.sms = 132, .boost_ghz = 1.98, .memory_tbps = 3.35, .tensor_per_cycle = 2048});
  return chip;
}

}  // namespace heddle
