#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang {

// Adds up uniform offsets that move a tile of pointers or integers again and again, as an unrolled loop does. A long
// chain of tile additions becomes a chain of scalar additions and one tile addition per use. Short chains stay.
void shorten_offsets(Kernel& kernel);

}  // namespace heddle::lang
