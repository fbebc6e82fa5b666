#pragma once

#include "emulator/scheduler.h"

namespace heddle::emulator {

// The matrix instruction of a warpgroup. A product happens, for all four warps at once, at some time between when the
// last of them asks for it and when one waits for it; that is when operands are read from shared memory.
void wgmma(Scheduler& s, const emulated::WgmmaCall& call, Place place);
void wgmma_wait(Scheduler& s, uint32_t pending, Place place);

// setmaxnreg: a warp that wants more registers than are free waits until others give some.
void set_registers(Scheduler& s, uint32_t count, Place place);

}  // namespace heddle::emulator
