#pragma once

#include <memory>
#include <string>

#include "target/energy/energy_counter.h"

namespace heddle {

// The counter of the NVIDIA GPU at a PCI address such as "00000000:01:00.0", from NVML. The library is loaded on first
// use: $HEDDLE_NVML if set, else libnvidia-ml.so.1. Throws kDevice.
std::unique_ptr<EnergyCounter> nvml_counter(const std::string& pci_address);

}  // namespace heddle
