#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang {

// Inserts an assertion before each access through a pointer. The assertion fails if the access is outside the memory of
// the parameter from which the pointer was derived; the access then skips the elements outside. Appends one kernel
// parameter for each pointer parameter, in order: the end address of that parameter's memory. Leaves two kinds of
// access unchanged: accesses through views, which have their own bounds, and accesses through pointers that were loaded
// from memory.
void check_bounds(Kernel& kernel);

}  // namespace heddle::lang
