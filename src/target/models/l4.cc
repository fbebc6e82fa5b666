// NVIDIA L4, by its data sheet: nothing was measured on it.
#include "target/cuda_model.h"

namespace heddle {

const KnownChip& l4() {
  static const KnownChip known = [] {
    KnownChip chip =
        scaled_from_h200("NVIDIA L4", 89, {.sms = 58, .boost_ghz = 2.04, .memory_tbps = 0.3, .tensor_per_cycle = 512});
    // Not by wgmma, so that these rates do not follow from the H200's: its data sheet has them.
    chip.model.chip.mma_per_cycle = 512, chip.model.chip.f64_per_cycle = 2;
    return chip;
  }();
  return known;
}

}  // namespace heddle
