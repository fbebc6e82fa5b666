#pragma once

#include "lang/analysis/windows.h"
#include "lang/ir/kernel.h"

namespace heddle::lang {

// An element of a tile has the position `start` plus its index along `dim`. Returns true if elements at position `size`
// and beyond cannot affect memory, so that their values are arbitrary. This is the case if every op that depends on the
// tile keeps positions separate (an elementwise op, a loop, a product that does not sum over them, ...) or is a store
// that skips positions from `size` on.
bool is_confined(const Kernel& kernel, const WindowAnalysis& windows, ValueId tile, size_t dim, const Polynomial& start,
                 const Polynomial& size);

}  // namespace heddle::lang
