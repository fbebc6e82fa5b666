#pragma once

#include <cstddef>
#include <vector>

#include "lang/ir/kernel.h"

namespace heddle::lang {

// How a kernel accesses the memory of one of its parameters.
struct Accesses {
  bool reads = false, writes = false;
};

// For each value, the parameters from which it may be computed. Only pointers, views and 64-bit integers have any.
std::vector<std::vector<bool>> origins_of(const Kernel& kernel);

// The accesses by parameter. An access through a pointer counts for every parameter from which the pointer may be
// computed. A pointer loaded from memory counts for none, since the memory of a parameter has no pointers to the memory
// of another.
std::vector<Accesses> accesses_of(const Kernel& kernel);

}  // namespace heddle::lang
