#pragma once

#include <cstdint>
#include <string>

#include "target/cuda_launch.h"
#include "target/target.h"

namespace heddle {

// The number of blocks that one SM holds at once. A thread has at most `most_registers` registers (a multiple of 8),
// and at most the number that __launch_bounds__(threads) implies. The default is correct for any kernel.
int resident_blocks(const GpuTarget& target, uint32_t threads, uint32_t shared_bytes, int most_registers = 256);

// Checks a launch whose blocks wait for each other (a cooperative grid, or the blocks of a cluster). If an idle device
// cannot run these blocks at the same time, their barrier never completes; returns the reason. Returns "" if it can.
// Other work on the device does not matter, since clusters and cooperative grids start as a whole.
std::string reject_waiting(const CudaLaunch& launch, const GpuTarget& target);

// True if the device can run all blocks of a launch at the same time, with `registers` registers per thread.
bool is_one_wave(const CudaLaunch& launch, const GpuTarget& target, int registers);

}  // namespace heddle
