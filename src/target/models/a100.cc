// NVIDIA A100 SXM with 80 GB, by its data sheet: nothing was measured on it.
#include "target/cuda_model.h"

namespace heddle {

const KnownChip& a100() {
  static const KnownChip known = [] {
    KnownChip chip = scaled_from_h200("NVIDIA A100", 80,
                                      {.sms = 108, .boost_ghz = 1.41, .memory_tbps = 2.039, .tensor_per_cycle = 1024});
    // Not by wgmma, so that these rates do not follow from the H200's: its data sheet has them.
    chip.model.chip.mma_per_cycle = 1024, chip.model.chip.f64_per_cycle = 32;
    return chip;
  }();
  return known;
}

}  // namespace heddle
