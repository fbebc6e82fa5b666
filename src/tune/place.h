#pragma once

#include "target/cuda_driver.h"
#include "target/target.h"
#include "tune/database.h"

namespace heddle::tune {

// The database of this user, beside the kernel cache.
Database& user_database();

// The conditions under which timings on a device hold: the device, its driver (on the CPU: the compiler), and this
// version of Heddle with its kernels. For a GPU that this machine does not have, the driver is "none".
Place place_of(const Target& target);
Place place_of(const CudaDevice& device);

}  // namespace heddle::tune
