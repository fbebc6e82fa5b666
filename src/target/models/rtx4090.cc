// NVIDIA GeForce RTX 4090, by its data sheet: nothing was measured on it.
#include "target/cuda_model.h"

namespace heddle {

const KnownChip& rtx4090() {
  static const KnownChip known = [] {
    // Sums of f16 in f32 have half the rate of sums in f16 on this chip.
    KnownChip chip = scaled_from_h200("NVIDIA GeForce RTX 4090", 89,
                                      {.sms = 128, .boost_ghz = 2.52, .memory_tbps = 1.008, .tensor_per_cycle = 256});
    // Not by wgmma, so that these rates do not follow from the H200's: its data sheet has them.
    chip.model.chip.mma_per_cycle = 256, chip.model.chip.f64_per_cycle = 2;
    return chip;
  }();
  return known;
}

}  // namespace heddle
