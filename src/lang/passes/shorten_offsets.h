#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang {

// Tiles of pointers and integers that are moved by uniform offsets again and again, as by an unrolled loop, get the sum
// of the offsets at once: a long chain of additions becomes a chain of scalars and one addition each. Short chains
// stay.
void shorten_offsets(Kernel& kernel);

}  // namespace heddle::lang
