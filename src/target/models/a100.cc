// NVIDIA A100 SXM with 80 GB: scaled from the H200's numbers by what its data sheet says; nothing was measured on it.
#include "target/cuda_model.h"

namespace heddle {

const KnownChip& a100() {
  static const KnownChip known = [] {
    const ChipFacts facts = {.sms = 108, .boost_ghz = 1.41, .memory_tbps = 2.039, .tensor_per_cycle = 1024};
    KnownChip chip = {
        .name = "NVIDIA A100", .architecture = 80, .facts = facts, .model = scaled(h200().model, h200().facts, facts)};
    // Of mma.sync and outside the tensor cores: the instructions are those of the data sheet's rates.
    chip.model.chip.mma_per_cycle = 1024, chip.model.chip.f64_per_cycle = 32;
    return chip;
  }();
  return known;
}

}  // namespace heddle
