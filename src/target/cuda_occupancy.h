#pragma once

#include <cstdint>
#include <string>

#include "target/cuda_launch.h"
#include "target/target.h"

namespace heddle {

// How many blocks one SM holds at once if a thread has `most_registers` (a multiple of 8), or all that
// __launch_bounds__(threads) leave it where that is less. The default holds whatever the compiler makes of a kernel.
int resident_blocks(const CudaTarget& target, uint32_t threads, uint32_t shared_bytes, int most_registers = 256);

// Why blocks of a launch that wait for each other (a cooperative grid, a cluster) might not all run at once on a device
// that does nothing else; empty: they do. A barrier among blocks that do not would wait for ever. What else the device
// does changes nothing: clusters and cooperative grids begin as a whole.
std::string reject_waiting(const CudaLaunch& launch, const CudaTarget& target);

// Whether a device has room for all blocks of a launch at once, if its threads have so many registers.
bool is_one_wave(const CudaLaunch& launch, const CudaTarget& target, int registers);

}  // namespace heddle
