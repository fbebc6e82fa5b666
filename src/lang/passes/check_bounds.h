#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang {

// Inserts an assertion before each access through pointers: it must lie in the memory of the parameter that the pointer
// was derived from. Elements outside are left out. For each pointer parameter, in order, the kernel gets one more
// parameter at the end: the address just past its memory. Accesses through views, which have their own bounds, and
// through pointers that were read from memory stay as they are.
void check_bounds(Kernel& kernel);

}  // namespace heddle::lang
