#pragma once

#include "lang/analysis/windows.h"
#include "lang/ir/kernel.h"

namespace heddle::lang {

// Consider the elements of a tile whose position start + index along `dim` is at or beyond `size`. Returns true if
// these elements never reach memory, so that their values are arbitrary. This is the case if all users of the tile are
// products, elementwise ops and loops, which keep rows separate, and stores that skip rows at or beyond the size.
bool is_confined(const Kernel& kernel, const WindowAnalysis& windows, ValueId tile, size_t dim, const Polynomial& start,
                 const Polynomial& size);

}  // namespace heddle::lang
