#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang {

// Throws kInvalidIr at the first op whose operands, attributes, regions or types break its rule. The message names the
// place in the user's file, if that is known, and in the text.
void verify(const Kernel& kernel);

}  // namespace heddle::lang
