#include "target/hip_model.h"

namespace heddle {

HipChip with_scaled_model(HipChip chip) {
  chip.model = scaled_from_h200(chip.name, 0, chip.facts).model;
  chip.model.chip.grid_wait_us = 0;  // unknown, so that no kernels share a launch whose blocks wait for each other
  return chip;
}

const std::vector<const HipChip*>& hip_chips() {
  static const std::vector<const HipChip*> all = {
#define HEDDLE_HIP_CHIP(name) &name(),
#include "target/models/hip_chips.inc"
#undef HEDDLE_HIP_CHIP
  };
  return all;
}

const HipChip* find_hip_chip(std::string_view architecture) {
  for (const HipChip* chip : hip_chips()) {
    if (chip->architecture == architecture) return chip;
  }
  return nullptr;
}

}  // namespace heddle
