// NVIDIA L4: scaled from the H200's numbers by what its data sheet says; nothing was measured on it.
#include "target/cuda_model.h"

namespace heddle {

const KnownChip& l4() {
  static const KnownChip known = [] {
    const ChipFacts facts = {.sms = 58, .boost_ghz = 2.04, .memory_tbps = 0.3, .tensor_per_cycle = 512};
    KnownChip chip = {
        .name = "NVIDIA L4", .architecture = 89, .facts = facts, .model = scaled(h200().model, h200().facts, facts)};
    // Of mma.sync and outside the tensor cores: the instructions are those of the data sheet's rates.
    chip.model.chip.mma_per_cycle = 512, chip.model.chip.f64_per_cycle = 2;
    return chip;
  }();
  return known;
}

}  // namespace heddle
