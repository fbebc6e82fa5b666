#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang {

// Throws kInvalidIr at the first op whose operands, attributes, regions or types violate the rules of its kind. The
// message gives the location in the kernel's text and, if known, in the user's source file.
void verify(const Kernel& kernel);

}  // namespace heddle::lang
