#pragma once

#include "lang/ir/kernel.h"

namespace heddle::lang {

// Combines the uniform offsets that are added repeatedly to a tile of pointers or integers, as in an unrolled loop. A
// long chain of tile additions becomes a chain of scalar additions and one tile addition per use. Short chains are not
// changed.
void shorten_offsets(Kernel& kernel);

}  // namespace heddle::lang
