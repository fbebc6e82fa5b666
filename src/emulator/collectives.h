#pragma once

#include "emulator/scheduler.h"

namespace heddle::emulator {

// Operations in which threads wait for each other: block barriers, exchanges between lanes, cluster barriers.

// A barrier of all threads of a block (`threads` is 0) does not wait for threads that have exited.
uint32_t barrier(Scheduler& s, uint32_t id, uint32_t threads, BarrierMode mode, bool predicate, Place place);

// An action runs once per collective operation, after all lanes have arrived and before any lane continues. `lanes` has
// the values of all lanes.
using Action = void (*)(Scheduler& s, const uint64_t* lanes, Place place);
emulated::Collected collect(Scheduler& s, Collective kind, uint64_t mask, uint64_t value, Place place,
                            Action action = nullptr);
// Like collect(), for instructions that a whole warp executes.
void whole_warp(Scheduler& s, Collective kind, uint64_t value, Place place, Action action);

// Releases the block's barriers that waited only for threads that have exited meanwhile.
void release_barriers(Scheduler& s, Block& block);

void cluster_arrive(Scheduler& s, Place place);
void cluster_wait(Scheduler& s, Place place);
// Releases the waiting threads if all threads have arrived. Threads that have exited count as arrived.
void release_cluster(Scheduler& s, Group& group);

}  // namespace heddle::emulator
