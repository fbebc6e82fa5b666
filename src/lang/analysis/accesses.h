#pragma once

#include <cstddef>
#include <vector>

#include "lang/ir/kernel.h"

namespace heddle::lang {

// What a kernel does with the memory behind one of its parameters.
struct Accesses {
  bool reads = false, writes = false;
};

// Which parameters each value may be made of, by value: pointers, views and integers of 64 bits. Empty: of none.
std::vector<std::vector<bool>> origins_of(const Kernel& kernel);

// By parameter. A pointer counts for every parameter that it may be made of; one that was read from memory is none of
// them, since the memory of a parameter has no pointers to another's.
std::vector<Accesses> accesses_of(const Kernel& kernel);

}  // namespace heddle::lang
