#pragma once

#include "emulator/scheduler.h"

namespace heddle::emulator {

// The warpgroup matrix instruction (wgmma). A product executes for all four warps at once. It executes at some time
// after the last of the four warps has issued it, at the latest when a warp waits for it. It reads its shared-memory
// operands at that time.
void wgmma(Scheduler& s, const emulated::WgmmaCall& call, Place place);
void wgmma_wait(Scheduler& s, uint32_t pending, Place place);

// The setmaxnreg instruction. A warp that requests more registers than are free waits until other warps release enough.
void set_registers(Scheduler& s, uint32_t count, Place place);

}  // namespace heddle::emulator
