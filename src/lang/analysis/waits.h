#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang {

// True for a load of memory that other programs change while this program runs. Such a load executes exactly once and
// is not moved.
bool is_volatile(const Op& op);

// True if the op may read values that another program has written since this program began: a volatile load or an
// atomic operation.
bool hears_others(const Op& op);

// True if no load may be moved across the op: a volatile load, an atomic operation or a barrier.
bool orders_loads(const Op& op);
bool orders_loads(const Region& region);

// True for a `while` that may wait for a write by another program. Such a loop has a volatile load or an atomic
// operation outside its inner `while` loops.
bool waits(const Op& op);
bool has_wait(const Kernel& kernel);

// True if the kernel has a volatile load. Its programs then communicate through plain stores.
bool has_volatile_load(const Kernel& kernel);

}  // namespace heddle::lang
