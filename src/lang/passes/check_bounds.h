#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang {

// Asserts, in front of each access through pointers, that it lies in the memory of the parameter that the pointer was
// made of, and leaves out elements that do not. For each pointer among its parameters, in their order, the kernel gets
// one more at the end: the address behind its memory. Accesses through views, which have bounds of their own, and
// through pointers that were read from memory stay as they are.
void check_bounds(Kernel& kernel);

}  // namespace heddle::lang
