#pragma once

#include <cstddef>
#include <vector>

#include "lang/ir/kernel.h"

namespace heddle::lang {

// Whether a kernel reads or writes the memory of one of its parameters.
struct Accesses {
  bool reads = false, writes = false;
};

// Returns, for each value, a mask of the parameters that the value may be computed from. Only values that can hold an
// address are tracked: pointers, views and 64-bit numbers. The mask of any other value is empty, which marks none.
std::vector<std::vector<bool>> origins_of(const Kernel& kernel);

// Returns the accesses of each parameter. An access through a pointer counts for every parameter that the pointer may
// be computed from. An access through a pointer that was loaded from memory counts for no parameter, since a
// parameter's memory never contains pointers to the memory of another parameter.
std::vector<Accesses> accesses_of(const Kernel& kernel);

}  // namespace heddle::lang
