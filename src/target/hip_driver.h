#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "target/cuda_driver.h"
#include "target/target.h"

namespace heddle {

// HIP's runtime (libamdhip64) behind the table of functions of CudaDriver: most of HIP's functions have the same
// parameters, and the others are adapted. The library is loaded on first use: $HEDDLE_HIP_DRIVER if set, else
// libamdhip64.so.7, .6 or .5. Calls that HIP lacks return 801, "not supported", the number in both interfaces.
const CudaDriver* find_hip_driver(std::string* why = nullptr);
// Throws kDevice if there is no HIP runtime.
const CudaDriver& hip_driver();

struct HipDevice {
  int ordinal = 0;
  std::string name;
  uint64_t memory_bytes = 0;
  int runtime_version = 0;
  HipTarget target;

  DeviceIdentity identity() const;
};

// The AMD GPUs of this machine whose architecture is known; empty if there is no HIP runtime. Never throws.
std::vector<HipDevice> hip_devices();

}  // namespace heddle
