#pragma once

#include "lang/analysis/windows.h"
#include "lang/ir/kernel.h"

namespace heddle::lang {

// Whether elements of a tile whose index along `dim` has start + index >= size reach memory nowhere: rows stay rows
// through products, elementwise ops and loops, and stores leave out rows beyond the size. Then these elements may hold
// anything.
bool is_confined(const Kernel& kernel, const WindowAnalysis& windows, ValueId tile, size_t dim, const Polynomial& start,
                 const Polynomial& size);

}  // namespace heddle::lang
