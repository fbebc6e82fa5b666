#pragma once

#include "target/cuda_driver.h"
#include "target/target.h"
#include "tune/database.h"

namespace heddle::tune {

// Returns the tuning database of the current user, which is in the folder of the kernel cache.
Database& user_database();

// Returns the conditions under which timings on a device are valid: the device, its driver (for a CPU, the compiler),
// and the version of Heddle with its kernels. For a GPU that this machine does not have, the driver is "none".
Place place_of(const Target& target);
Place place_of(const CudaDevice& device);

}  // namespace heddle::tune
