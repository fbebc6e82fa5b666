#pragma once

#include "emulator/scheduler.h"

namespace heddle::emulator {

// The matrix instruction of a warpgroup. A product executes for all four warps at once, at some time after the last
// warp issues it, and at the latest when a warp waits for it. It reads its operands from shared memory at that time.
void wgmma(Scheduler& s, const emulated::WgmmaCall& call, Place place);
void wgmma_wait(Scheduler& s, uint32_t pending, Place place);

// setmaxnreg: a warp that requests more registers than are free waits until other warps release some.
void set_registers(Scheduler& s, uint32_t count, Place place);

}  // namespace heddle::emulator
