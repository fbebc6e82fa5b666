// NVIDIA H100 SXM: scaled from the H200's numbers by what its data sheet says; nothing was measured on it.
#include "target/cuda_model.h"

namespace heddle {

const KnownChip& h100() {
  static const KnownChip known = [] {
    const ChipFacts facts = {.sms = 132, .boost_ghz = 1.98, .memory_tbps = 3.35, .tensor_per_cycle = 2048};
    KnownChip chip = {
        .name = "NVIDIA H100", .architecture = 90, .facts = facts, .model = scaled(h200().model, h200().facts, facts)};
    return chip;
  }();
  return known;
}

}  // namespace heddle
