#pragma once

#include "emulator/scheduler.h"

namespace heddle::emulator {

// What threads wait for together: barriers of the block, exchanges between lanes, barriers of the cluster.

uint32_t barrier(Scheduler& s, uint32_t id, uint32_t threads, BarrierMode mode, bool predicate, Place place);

// `action` runs once, when all lanes are there and before any goes on, with what they handed in.
using Action = void (*)(Scheduler& s, const uint64_t* lanes, Place place);
emulated::Collected collect(Scheduler& s, Collective kind, uint32_t mask, uint64_t value, Place place,
                            Action action = nullptr);
// The same for all lanes of a warp, for instructions that a whole warp executes.
void whole_warp(Scheduler& s, Collective kind, uint64_t value, Place place, Action action);

void cluster_arrive(Scheduler& s, Place place);
void cluster_wait(Scheduler& s, Place place);
// Lets those go on who wait, where all are there. Threads that ended count as arrived.
void release_cluster(Scheduler& s, Group& group);

}  // namespace heddle::emulator
