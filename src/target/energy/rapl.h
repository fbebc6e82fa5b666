#pragma once

#include <memory>
#include <string>

#include "target/energy/energy_counter.h"

namespace heddle {

// The sum of the counters of all processor packages and their memory, from Linux's powercap interface (RAPL). `folder`
// is usually /sys/class/powercap. Throws kDevice.
std::unique_ptr<EnergyCounter> rapl_counter(const std::string& folder);

}  // namespace heddle
