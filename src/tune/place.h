#pragma once

#include "target/cuda_driver.h"
#include "target/target.h"
#include "tune/database.h"

namespace heddle::tune {

// The database of this user, beside the kernel cache.
Database& user_database();

// What timings on a device hold for: the device itself, its driver (on the CPU: the compiler), and this version of
// Heddle with its kernels. The target of a GPU that is not here has the driver "none".
Place place_of(const Target& target);
Place place_of(const CudaDevice& device);

}  // namespace heddle::tune
