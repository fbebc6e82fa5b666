#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang {

// Whether a load reads memory that other programs change while this one runs: it happens once, where it stands.
bool is_volatile(const Op& op);

// Whether an op may read what another program has written meanwhile: a volatile load or an atomic operation.
bool hears_others(const Op& op);

// Whether loads stay on the side of an op where they stand: volatile loads, atomic operations, barriers.
bool orders_loads(const Op& op);
bool orders_loads(const Region& region);

// Whether an op is a `while` that may end when another program writes something: what it hears from others stands in
// it, and in no other `while` inside.
bool waits(const Op& op);
bool has_wait(const Kernel& kernel);

// Whether programs hand each other values by plain stores.
bool has_volatile_load(const Kernel& kernel);

}  // namespace heddle::lang
