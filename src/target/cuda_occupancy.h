#pragma once

#include <cstdint>
#include <string>

#include "target/cuda_launch.h"
#include "target/target.h"

namespace heddle {

// The number of blocks that one SM holds at once if a thread has `most_registers` (a multiple of 8), or the limit that
// __launch_bounds__(threads) implies if that is lower. The default holds for any kernel that the compiler makes.
int resident_blocks(const CudaTarget& target, uint32_t threads, uint32_t shared_bytes, int most_registers = 256);

// The reason why blocks of a launch that wait for each other (a cooperative grid, a cluster) might not all run at once
// on an idle device; empty if they do. If they do not, a barrier among them never ends. Other work on the device does
// not matter: clusters and cooperative grids start as a whole.
std::string reject_waiting(const CudaLaunch& launch, const CudaTarget& target);

// True if a device has room for all blocks of a launch at once with `registers` registers per thread.
bool is_one_wave(const CudaLaunch& launch, const CudaTarget& target, int registers);

}  // namespace heddle
