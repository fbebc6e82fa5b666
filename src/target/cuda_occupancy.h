#pragma once

#include <cstdint>
#include <string>

#include "target/cuda_launch.h"
#include "target/target.h"

namespace heddle {

// How many blocks one multiprocessor holds at once, whatever the compiler makes of the kernel: each thread may have all
// the registers that __launch_bounds__(threads) leave it.
int resident_blocks(const CudaTarget& target, uint32_t threads, uint32_t shared_bytes);

// Why blocks of a launch that wait for each other (a cooperative grid, a cluster) might not all run at once on a device
// that does nothing else; empty: they do. A barrier among blocks that do not would wait for ever. What else the device
// does changes nothing: clusters and cooperative grids begin as a whole.
std::string reject_waiting(const CudaLaunch& launch, const CudaTarget& target);

// Whether a device has room for all blocks of a launch at once, if its threads have so many registers; a multiprocessor
// has it for one block.
bool is_one_wave(const CudaLaunch& launch, const CudaTarget& target, int registers);

}  // namespace heddle
