#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang {

// True if a load reads memory that other programs change during this one. Such a load executes once, at its place.
bool is_volatile(const Op& op);

// True if an op may read values that another program wrote in the meantime: a volatile load or an atomic operation.
bool hears_others(const Op& op);

// True if no load may be moved across the op: volatile loads, atomic operations, barriers.
bool orders_loads(const Op& op);
bool orders_loads(const Region& region);

// True for a `while` that may end because another program writes: it has a volatile load or an atomic operation outside
// of its inner `while` loops.
bool waits(const Op& op);
bool has_wait(const Kernel& kernel);

// True if the kernel has a volatile load: its programs then pass values to each other by plain stores.
bool has_volatile_load(const Kernel& kernel);

}  // namespace heddle::lang
